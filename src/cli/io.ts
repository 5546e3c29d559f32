import { createInterface } from 'node:readline/promises';
import { setTimeout as sleep } from 'node:timers/promises';

/** What a command sees of the world besides the cluster. */
export interface Io {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** To standard output. */
  out(text: string): void;
  /** To standard error: progress and questions, so that standard output stays what was asked for. */
  err(text: string): void;
  /** Asks the person at the terminal; undefined when there is none. */
  readonly ask: ((question: string) => Promise<string>) | undefined;
  /** Wall clock, milliseconds since 1970: for people to read. */
  now(): number;
  /** Monotonic, in milliseconds. */
  instant(): number;
  sleep(milliseconds: number): Promise<void>;
}

export const processIo = (): Io => ({
  env: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
  ask: process.stdin.isTTY && process.stderr.isTTY ? askAtTerminal : undefined,
  now: () => Date.now(),
  instant: () => performance.now(),
  sleep: (milliseconds) => sleep(milliseconds),
});

async function askAtTerminal(question: string): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    // Ctrl-C and Ctrl-D close it without an answer.
    return await new Promise<string>((resolve) => {
      terminal.once('close', () => resolve(''));
      terminal.question(question).then(resolve, () => resolve(''));
    });
  } finally {
    terminal.close();
  }
}
