import type { Command } from './command.ts';

/** The text of `--help`. */
export function helpOf(path: readonly string[], command: Command): string {
  const name = ['kilit', ...path].join(' ');
  const lines = command.kind === 'action' ? [command.help, '', `Usage: ${name}`] : groupLines(name, command);
  return [...lines, '', 'Examples', ...command.examples.map((example) => `  ${example}`), ''].join('\n');
}

function groupLines(name: string, group: Extract<Command, { kind: 'group' }>): string[] {
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
