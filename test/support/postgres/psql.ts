import { CommandError, run } from '../../../tools/cluster/exec.ts';
import { program } from './debian-programs.ts';

export interface PsqlResult {
  /** 0; 3 when a statement failed; 2 when the connection did. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Unaligned rows without headers, no `~/.psqlrc`, the end at the first error. */
const OPTIONS = ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1'];

/** Pipes SQL into `psql`, as a user does with the output of `kilit guard postgres sql`. */
export async function psql(url: string, sql: string): Promise<PsqlResult> {
  try {
    return { code: 0, ...(await run(program('psql'), [...OPTIONS, url], { input: sql })) };
  } catch (error) {
    if (!(error instanceof CommandError) || error.exitCode === null) throw error;
    return { code: error.exitCode, stdout: error.stdout, stderr: error.stderr };
  }
}
