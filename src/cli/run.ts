import { assertNever } from '../core/assert-never.ts';
import { parse } from './command.ts';
import { Exit, Failure } from './failure.ts';
import { helpOf } from './help.ts';
import type { Io } from './io.ts';
import { root } from './root.ts';
import { version } from './version.ts';

/** Does what a command line asks for, and returns the exit code. */
export async function runKilit(words: readonly string[], io: Io): Promise<number> {
  const request = parse(root, words);
  switch (request.kind) {
    case 'run':
      return await guarded(() => request.action.run(request.input, io), io);
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

/** A failure that a person can mend is told in one line; anything else is a fault of kilit and keeps its stack. */
async function guarded(action: () => number | Promise<number>, io: Io): Promise<number> {
  try {
    return await action();
  } catch (err) {
    if (!(err instanceof Failure)) throw err;
    io.err(`${err.message}\n`);
    return err.exit;
  }
}
