/** `kilit`, the command line; as `kubectl-kilit` on the PATH also `kubectl kilit`. */
import { processIo } from './io.ts';
import { runKilit } from './run.ts';

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE') return; // `kilit … | head` closes the pipe early: no fault
  process.stderr.write(`Cannot write: ${error.message}\n`);
  process.exitCode = 1;
});
process.exitCode = await runKilit(process.argv.slice(2), processIo());
