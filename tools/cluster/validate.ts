/** What a cluster may be called and how large it may be. Each check returns one fault or undefined. */
import { MAX_NAME_LENGTH, MAX_NODES } from './constants.ts';

export function nameFault(name: string): string | undefined {
  if (/^[a-z0-9]([a-z0-9-]*[a-z0-9])?$/.test(name) && name.length <= MAX_NAME_LENGTH) return undefined;
  return `the cluster's name must be at most ${MAX_NAME_LENGTH} of a-z, 0-9 and '-', got '${name}'`;
}

export function nodesFault(nodes: number): string | undefined {
  if (Number.isInteger(nodes) && nodes >= 1 && nodes <= MAX_NODES) return undefined;
  return `nodes must be 1 to ${MAX_NODES}, got ${nodes}`;
}
