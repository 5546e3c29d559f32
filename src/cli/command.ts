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
  /** What goes to standard output. */
  readonly run: () => string;
}

/** What a command line asks for. */
export type Request =
  | { readonly kind: 'run'; readonly action: Action }
  | { readonly kind: 'help'; readonly path: readonly string[]; readonly command: Command }
  | { readonly kind: 'version' }
  | { readonly kind: 'fault'; readonly message: string };

const HELP = new Set(['--help', '-h']);

/** Pure: from the words of the command line to what is asked. `kilit help guard` is `kilit guard --help`. */
export function parse(root: Group, words: readonly string[]): Request {
  if (words[0] === 'help') return parse(root, [...words.slice(1), '--help']);
  let command: Command = root;
  const path: string[] = [];
  for (const word of words) {
    if (HELP.has(word)) return { kind: 'help', path, command };
    if (word === '--version' && path.length === 0) return { kind: 'version' };
    const next: Command | undefined = command.kind === 'group' ? own(command.commands, word) : undefined;
    if (next === undefined) return { kind: 'fault', message: unknown(command, path, word) };
    command = next;
    path.push(word);
  }
  return command.kind === 'action' ? { kind: 'run', action: command } : { kind: 'help', path, command };
}

/** `constructor` is no command. */
const own = <T>(record: Readonly<Record<string, T>>, key: string): T | undefined =>
  Object.hasOwn(record, key) ? record[key] : undefined;

function unknown(command: Command, path: readonly string[], word: string): string {
  const before = ['kilit', ...path].join(' ');
  const help = `See: ${before} --help`;
  if (command.kind === 'action') return `'${before}' takes no argument '${word}'. ${help}`;
  const nearest = nearestOf(Object.keys(command.commands), word);
  return `'${before} ${word}' is no command.${nearest === undefined ? '' : ` Did you mean '${before} ${nearest}'?`} ${help}`;
}

const MAX_EDITS = 2;

function nearestOf(names: readonly string[], word: string): string | undefined {
  const near = names.map((name) => ({ name, edits: distance(name, word) })).filter(({ edits }) => edits <= MAX_EDITS);
  return near.toSorted((a, b) => a.edits - b.edits)[0]?.name;
}

/** Edits from one word to the other (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
