import { chmodSync, existsSync, readFileSync, renameSync, rmSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { TOKEN_ENV } from '../api/names.ts';
import { addLoss, formatLosses, type Losses, NO_LOSSES, parseLosses } from '../core/backoff.ts';
import type { Mode } from '../core/holder-types.ts';
import type { FencingToken } from '../core/token.ts';

/** The files of `/run/kilit`. All calls are synchronous, so that nothing happens between a decision and its file. */
export interface RunFiles {
  readonly socketPath: string;
  /** Writes the mark of a fresh start of the whole Pod: all its former programs are dead. */
  writeEpoch(id: string): void;
  /** Takes the mark away. `absent`: the sidecar was restarted without its Pod. */
  consumeEpoch(): 'fresh' | 'absent';
  /** Gives the program its token. The env file comes last: a container can start once it is there. */
  writeGrant(token: FencingToken): void;
  /** Takes the token away; the env file goes first. No error if there is none. */
  removeGrant(): void;
  hasGrant(): boolean;
  removeSocket(): void;
  readLosses(): Losses;
  /** Counts a loss for the back-off, and says why it came. Survives the next start. */
  recordLoss(reason: string, heldMs: number): void;
}

const MODE = 0o644;

export function createRunFiles(dir: string, mode: Mode): RunFiles {
  const path = (name: string) => join(dir, name);
  const replace = (name: string, text: string) => replaceFile(path(name), text);
  const readLosses = () => {
    const text = readIfThere(path('losses'));
    return text === undefined ? NO_LOSSES : parseLosses(text);
  };
  return {
    socketPath: path('sock'),
    writeEpoch: (id) => replace('epoch', `${id}\n`),
    consumeEpoch: () => (removeIfThere(path('epoch')) ? 'fresh' : 'absent'),
    writeGrant(token) {
      replace('token', String(token));
      if (mode === 'gate') replace('env', `${TOKEN_ENV}='${token}'\n`);
    },
    removeGrant() {
      removeIfThere(path('env'));
      removeIfThere(path('token'));
    },
    hasGrant: () => existsSync(path('env')) || existsSync(path('token')),
    removeSocket: () => void removeIfThere(path('sock')),
    readLosses,
    recordLoss(reason, heldMs) {
      replace('losses', formatLosses(addLoss(readLosses(), heldMs)));
      replace('reason', `${reason.replaceAll('\n', ' ')}\n`);
    },
  };
}

/** Writes beside and renames, so that a reader sees the old or the new text, never a part. */
function replaceFile(path: string, text: string): void {
  const beside = `${path}.new`;
  try {
    writeFileSync(beside, text, { mode: MODE });
    chmodSync(beside, MODE); // the umask may have taken bits away
    renameSync(beside, path);
  } catch (error) {
    rmSync(beside, { force: true, recursive: true });
    throw error;
  }
}

/** Whether there was a file. Any failure but "not there" is an error: the file may still be there. */
function removeIfThere(path: string): boolean {
  try {
    unlinkSync(path);
    return true;
  } catch (error) {
    if (isMissing(error)) return false;
    throw error;
  }
}

/** The first kilobyte of a file, or nothing if it cannot be read. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').slice(0, 1024);
  } catch {
    return undefined;
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}
