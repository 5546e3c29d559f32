import { setTimeout as sleep } from 'node:timers/promises';
import type { Io } from '../../../src/cli/io.ts';
import { runKilit } from '../../../src/cli/run.ts';
import type { Ran } from '../../support/kilit.ts';

export interface InProcess {
  readonly env?: Readonly<Record<string, string>>;
  /** What the person at the terminal answers; absent: there is no terminal. */
  readonly answer?: string;
  readonly now?: number;
  /** `virtual`: passes only while the command sleeps, and then at once. @default virtual */
  readonly time?: 'virtual' | 'real';
}

/** The command in this process: client-node is loaded once for all tests of a file. */
export async function inProcess(
  words: readonly string[],
  { env = {}, answer, now = Date.now(), time = 'virtual' }: InProcess,
): Promise<Ran> {
  let [stdout, stderr, instant] = ['', '', 0];
  const io: Io = {
    env: { HOME: '/nonexistent', ...env },
    out: (text) => void (stdout += text),
    err: (text) => void (stderr += text),
    ask: answer === undefined ? undefined : async (question) => ((stderr += question), answer),
    now: () => now,
    instant: () => (time === 'real' ? performance.now() : instant),
    sleep: async (milliseconds) => {
      if (time === 'real') await sleep(milliseconds);
      else instant += milliseconds;
    },
  };
  const code = await runKilit(words, io);
  return { code, stdout, stderr };
}
