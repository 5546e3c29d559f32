import type { Seen } from './issued.ts';

/** What a new base is judged by. */
export interface BaseFacts {
  readonly base: bigint;
  /** Revision of the API server's store now. */
  readonly revision: bigint;
  /** The greatest token that was found anywhere, undefined: none. */
  readonly greatest: Seen | undefined;
}

/** The policy's limits: below this, and at most so much in one change. */
const BASE_LIMIT = 10n ** 16n;
const MOST_ADDED = 10n ** 14n;

/**
 * A proposal leaves room for so many writes that the cluster does not know of any more: tokens that were issued after the
 * backup was made. A cluster that writes a thousand times a second needs eleven days for them.
 */
const ROOM = 10n ** 9n;

/** A round number above every token that is known and above what would be granted now, with `ROOM` between. */
export function proposedBase({ base, revision, greatest }: BaseFacts): bigint {
  const known = [base + revision, greatest?.token ?? 0n].reduce((a, b) => (a > b ? a : b));
  return (known / ROOM + 2n) * ROOM;
}

/** Why the base may not become `to`, or undefined. The policy `kilit-token-base` refuses the same. */
export function raiseFault(to: bigint, { base }: Pick<BaseFacts, 'base'>): string | undefined {
  if (to < base) return `the token base only grows: it is ${base}, and ${to} is less`;
  if (to === base) return `the token base is ${base} already`;
  if (to >= BASE_LIMIT) return `the token base must be below 10^16, got ${to}`;
  if (to - base > MOST_ADDED)
    return `one change may add at most 10^14, since it cannot be taken back; ${to} would add ${to - base}`;
  return undefined;
}

/** A known token that would come again with this base, or undefined. */
export function notAbove(to: bigint, { revision, greatest }: BaseFacts): Seen | undefined {
  return greatest !== undefined && revision + to <= greatest.token ? greatest : undefined;
}
