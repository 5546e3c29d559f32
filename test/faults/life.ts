/** The lives of the programs, as they wrote them themselves into files of this machine. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';

/** One process of a program. Times are the wall clock of this machine, milliseconds since 1970. */
export interface Life {
  readonly lock: string;
  readonly pod: string;
  readonly life: string;
  /** From its environment; 0 if there was none. */
  readonly token: bigint;
  /** What stood in its file when it started. */
  readonly file: string;
  readonly from: number;
  /** Of its last line: the last moment at which it certainly ran. */
  readonly to: number;
}

interface Line {
  readonly pod: string;
  readonly life: string;
  readonly token: string;
  readonly did: string;
  readonly at: number;
  readonly file?: string;
}

export function livesOf(lock: string, text: string): readonly Life[] {
  const lives = new Map<string, Life>();
  for (const part of text.split('\n').slice(0, -1)) {
    const { pod, life, token, at, file = '' } = JSON.parse(part) as Line;
    const begun = lives.get(life);
    const number = /^[1-9][0-9]*$/.test(token) ? BigInt(token) : 0n;
    lives.set(
      life,
      begun === undefined ? { lock, pod, life, token: number, file, from: at, to: at } : { ...begun, to: at },
    );
  }
  return [...lives.values()];
}

export async function readLives(dir: string, locks: readonly string[]): Promise<readonly Life[]> {
  const files = new Set(await readdir(dir));
  const all = await Promise.all(
    locks.filter((lock) => files.has(lock)).map(async (lock) => livesOf(lock, await readFile(join(dir, lock), 'utf8'))),
  );
  return all.flat();
}
