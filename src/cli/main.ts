/** `kilit`, the command line. A command is a value in a file of its own, entered in the tree below. */
import { assertNever } from '../core/assert-never.ts';
import { type Group, parse } from './command.ts';
import { guardPostgres } from './guard-postgres.ts';
import { helpOf } from './help.ts';
import { version } from './version.ts';

const root: Group = {
  kind: 'group',
  summary: 'Named locks for Kubernetes with a fencing token',
  examples: ['npx kilit guard postgres sql | psql "$DATABASE_URL" -v ON_ERROR_STOP=1 --single-transaction'],
  commands: {
    guard: {
      kind: 'group',
      summary: 'Let a resource refuse writes with an old fencing token',
      examples: ['npx kilit guard postgres --help'],
      commands: { postgres: guardPostgres },
    },
  },
};

/** As of a shell's own commands: the line was wrong, nothing was done. */
const USAGE = 2;

function main(words: readonly string[]): number {
  const request = parse(root, words);
  switch (request.kind) {
    case 'run':
      process.stdout.write(request.action.run());
      return 0;
    case 'help':
      process.stdout.write(helpOf(request.path, request.command));
      return 0;
    case 'version':
      process.stdout.write(`kilit ${version}\n`);
      return 0;
    case 'fault':
      process.stderr.write(`${request.message}\n`);
      return USAGE;
    default:
      return assertNever(request);
  }
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return; // `kilit … | head` closes the pipe early: no fault
  process.stderr.write(`Cannot write: ${error.message}\n`);
  process.exitCode = 1;
});
process.exitCode = main(process.argv.slice(2));
