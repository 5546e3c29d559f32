import { parseArgs } from 'node:util';
import { nearestOf } from './nearest.ts';

/** An option of a command: `--name`, and perhaps `-n`. */
export interface Option {
  readonly name: string;
  readonly short?: string;
  /** What its value is called in the help; absent: it takes none. */
  readonly value?: string;
  readonly choices?: readonly string[];
  readonly required?: boolean;
  readonly summary: string;
}

/** What a command was called with. */
export interface Input {
  readonly operands: readonly string[];
  /** By name, in the order given; of an option without a value: `''`. */
  readonly options: ReadonlyMap<string, readonly string[]>;
}

/** The value given last, or undefined. */
export const valueOf = (input: Input, name: string): string | undefined => input.options.get(name)?.at(-1);
export const isGiven = (input: Input, name: string): boolean => input.options.has(name);

interface Takes {
  readonly operands?: readonly string[];
  readonly options?: readonly Option[];
}

interface Fault {
  /** Goes on after the command's name. */
  readonly fault: string;
}

/** Pure: the words after a command, checked against what it takes. */
export function readInput({ operands = [], options = [] }: Takes, words: readonly string[]): Input | Fault {
  const found: string[] = [];
  const given = new Map<string, string[]>();
  for (const token of tokensOf(words, options)) {
    if (token.kind === 'option-terminator') continue;
    if (token.kind === 'positional') {
      found.push(token.value);
      continue;
    }
    const option = options.find(({ name }) => name === token.name);
    if (option === undefined) return { fault: unknownOption(token.rawName, { operands, options }) };
    const fault = valueFault(option, token);
    if (fault !== undefined) return { fault };
    given.set(option.name, [...(given.get(option.name) ?? []), token.value ?? '']);
  }
  const extra = found[operands.length];
  if (extra !== undefined) return { fault: `takes no argument '${extra}'.` };
  const missing = operands[found.length];
  if (missing !== undefined && !missing.startsWith('[')) return { fault: `needs ${missing}.` };
  const needed = options.find(({ name, required }) => required === true && !given.has(name));
  if (needed !== undefined) return { fault: `needs --${needed.name} ${needed.value ?? ''}.` };
  return { operands: found, options: given };
}

/** Not strict, so that the faults can be said in this command's words. */
function tokensOf(words: readonly string[], options: readonly Option[]) {
  const known = options.map(({ name, short, value }) => [
    name,
    { type: value === undefined ? ('boolean' as const) : ('string' as const), ...(short !== undefined && { short }) },
  ]);
  return parseArgs({ args: [...words], options: Object.fromEntries(known), strict: false, tokens: true }).tokens;
}

function unknownOption(rawName: string, { operands = [], options = [] }: Takes): string {
  if (options.length === 0 && operands.length === 0) return `takes no argument '${rawName}'.`;
  const nearest = nearestOf(
    options.map(({ name }) => `--${name}`),
    rawName,
  );
  return `has no option '${rawName}'.${nearest === undefined ? '' : ` Did you mean '${nearest}'?`}`;
}

function valueFault(
  { value, choices }: Option,
  token: { readonly rawName: string; readonly value: string | undefined; readonly inlineValue: boolean | undefined },
): string | undefined {
  const { rawName } = token;
  if (value === undefined) return token.value === undefined ? undefined : `takes no value for '${rawName}'.`;
  const swallowed = token.inlineValue !== true && token.value?.startsWith('-') === true && token.value.length > 1;
  if (token.value === undefined || token.value === '' || swallowed) return `needs ${value} after '${rawName}'.`;
  if (choices?.includes(token.value) ?? true) return undefined;
  return `takes ${choices?.join(', ')} for '${rawName}', not '${token.value}'.`;
}
