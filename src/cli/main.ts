/** `kilit`, the command line; as `kubectl-kilit` on the PATH also `kubectl kilit`. */
import { assertNever } from '../core/assert-never.ts';
import { parse } from './command.ts';
import { Exit, Failure } from './failure.ts';
import { helpOf } from './help.ts';
import { type Io, processIo } from './io.ts';
import { root } from './root.ts';
import { version } from './version.ts';

async function main(words: readonly string[], io: Io): Promise<number> {
  const request = parse(root, words);
  switch (request.kind) {
    case 'run':
      return await run(() => request.action.run(request.input, io), io);
    case 'help':
      io.out(helpOf(request.path, request.command));
      return Exit.ok;
    case 'version':
      io.out(`kilit ${version}\n`);
      return Exit.ok;
    case 'fault':
      io.err(`${request.message}\n`);
      return Exit.usage;
    default:
      return assertNever(request);
  }
}

async function run(action: () => number | Promise<number>, io: Io): Promise<number> {
  try {
    return await action();
  } catch (err) {
    if (!(err instanceof Failure)) throw err;
    io.err(`${err.message}\n`);
    return err.exit;
  }
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return; // `kilit … | head` closes the pipe early: no fault
  process.stderr.write(`Cannot write: ${error.message}\n`);
  process.exitCode = 1;
});
process.exitCode = await main(process.argv.slice(2), processIo());
