import type { Action, Command, Group } from './command.ts';
import type { Option } from './options.ts';

/** The text of `--help`. */
export function helpOf(path: readonly string[], command: Command): string {
  const name = ['kilit', ...path].join(' ');
  const lines = command.kind === 'action' ? actionLines(name, command) : groupLines(name, command);
  const exits = path.length === 0 ? ['', 'Exit codes: 0 done, 1 failed or a finding, 2 wrong usage.'] : [];
  return [...lines, '', 'Examples', ...command.examples.map((example) => `  ${example}`), ...exits, ''].join('\n');
}

function actionLines(name: string, { help, operands = [], options = [] }: Action): string[] {
  const required = options.filter((option) => option.required === true).map(spelling);
  const usage = [name, ...operands, ...required, ...(options.length > required.length ? ['[options]'] : [])];
  return [help, '', `Usage: ${usage.join(' ')}`, ...(options.length === 0 ? [] : ['', 'Options', ...table(options)])];
}

const spelling = ({ name, value }: Option): string => `--${name}${value === undefined ? '' : ` ${value}`}`;

function table(options: readonly Option[]): string[] {
  const names = options.map(
    (option) => `${option.short === undefined ? '    ' : `-${option.short}, `}${spelling(option)}`,
  );
  const width = Math.max(...names.map((name) => name.length));
  return options.map(({ summary, choices }, i) => {
    const among = choices === undefined ? '' : ` (${choices.join(', ')})`;
    return `  ${(names[i] ?? '').padEnd(width)}   ${summary}${among}`;
  });
}

function groupLines(name: string, group: Group): string[] {
  const names = Object.keys(group.commands);
  const width = Math.max(...names.map((word) => word.length));
  return [
    `${group.summary}.`,
    '',
    `Usage: ${name} COMMAND   (each takes --help)`,
    '',
    'Commands',
    ...names.map((word) => `  ${word.padEnd(width)}   ${group.commands[word]?.summary}`),
  ];
}
