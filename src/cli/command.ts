import type { Io } from './io.ts';
import { nearestOf } from './nearest.ts';
import { type Input, type Option, readInput } from './options.ts';

/** A command of `kilit`: a word that does something, or a group of such words. */
export type Command = Group | Action;

interface Described {
  /** One line for the list of the group above. */
  readonly summary: string;
}

export interface Group extends Described {
  readonly kind: 'group';
  readonly commands: Readonly<Record<string, Command>>;
  readonly examples: readonly string[];
}

export interface Action extends Described {
  readonly kind: 'action';
  /** What it does, its limits, what it prints. */
  readonly help: string;
  readonly examples: readonly string[];
  /** What it takes besides options, in order, such as `LOCK`; all of it is required, but for what stands in brackets. */
  readonly operands?: readonly string[];
  readonly options?: readonly Option[];
  /** Returns the exit code (`failure.ts`). @throws Failure for what a person can mend. */
  readonly run: (input: Input, io: Io) => number | Promise<number>;
}

/** What a command line asks for. */
export type Request =
  | { readonly kind: 'run'; readonly action: Action; readonly input: Input }
  | { readonly kind: 'help'; readonly path: readonly string[]; readonly command: Command }
  | { readonly kind: 'version' }
  | { readonly kind: 'fault'; readonly message: string };

const HELP = new Set(['--help', '-h']);

/** Pure: from the words of the command line to what is asked. `kilit help guard` is `kilit guard --help`. */
export function parse(root: Group, words: readonly string[]): Request {
  if (words[0] === 'help') return parse(root, [...words.slice(1), '--help']);
  let command: Command = root;
  const path: string[] = [];
  for (const [index, word] of words.entries()) {
    if (command.kind === 'action') return run(command, path, words.slice(index));
    if (HELP.has(word)) return { kind: 'help', path, command };
    if (word === '--version' && path.length === 0) return { kind: 'version' };
    const next: Command | undefined = own(command.commands, word);
    if (next === undefined) return { kind: 'fault', message: unknown(command, path, word) };
    command = next;
    path.push(word);
  }
  return command.kind === 'action' ? run(command, path, []) : { kind: 'help', path, command };
}

function run(action: Action, path: readonly string[], words: readonly string[]): Request {
  const own = words.includes('--') ? words.slice(0, words.indexOf('--')) : words;
  if (own.some((word) => HELP.has(word))) return { kind: 'help', path, command: action };
  const input = readInput(action, words);
  if (!('fault' in input)) return { kind: 'run', action, input };
  const name = ['kilit', ...path].join(' ');
  return { kind: 'fault', message: `'${name}' ${input.fault} See: ${name} --help` };
}

/** `constructor` is no command. */
const own = <T>(record: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;

function unknown(group: Group, path: readonly string[], word: string): string {
  const before = ['kilit', ...path].join(' ');
  const nearest = nearestOf(Object.keys(group.commands), word);
  return `'${before} ${word}' is no command.${nearest === undefined ? '' : ` Did you mean '${before} ${nearest}'?`} See: ${before} --help`;
}
