/** One run of `postgres`, from its start to its end. */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { killAllIn } from './folder.ts';
import { cleanEnv, serverUser } from './server-user.ts';

/** Crash recovery included. */
const START_SECONDS = 60;
/** A stop in mode `smart` or `fast` can wait for ever for a paused backend. */
const STOP_SECONDS = 30;

/** `smart` waits for clients, `fast` ends their sessions, `immediate` is a crash that PostgreSQL does itself. */
export type StopMode = 'smart' | 'fast' | 'immediate';
const SIGNALS = { smart: 'SIGTERM', fast: 'SIGINT', immediate: 'SIGQUIT' } as const;

export interface PostmasterFiles {
  /** Folder of `postgres`. */
  readonly bin: string;
  readonly data: string;
  readonly log: string;
}

export interface Postmaster {
  readonly pid: number;
  isRunning(): boolean;
  /** Returns when it has ended; throws after 30 s. */
  stop(mode: StopMode): Promise<void>;
  /** SIGKILL to it and all its children. */
  kill(): Promise<void>;
}

/** The last line of `postmaster.pid` says what pg_ctl, too, waits for. */
function isReady(data: string, pid: number): boolean {
  try {
    const lines = readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n');
    return lines[0] === String(pid) && lines[7]?.trim() === 'ready';
  } catch {
    return false;
  }
}

const endOf = (log: string): string => readFileSync(log, 'utf8').trim().split('\n').slice(-15).join('\n');

/** Starts a server on an initialised data directory. Returns when it accepts connections; throws with the log's end. */
export async function startPostmaster(
  { bin, data, log }: PostmasterFiles,
  settings: Readonly<Record<string, string>>,
): Promise<Postmaster> {
  const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const output = openSync(log, 'a');
  const child = spawn(join(bin, 'postgres'), ['-D', data, ...args], {
    ...serverUser(),
    cwd: data,
    detached: true,
    env: cleanEnv(),
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  let running = true;
  const ended = new Promise<void>((resolve) => {
    const end = (): void => {
      running = false;
      resolve();
    };
    child.once('error', end).once('exit', end);
  });
  child.unref();
  const pid = child.pid ?? -1;

  const deadline = performance.now() + START_SECONDS * 1000;
  while (!isReady(data, pid)) {
    if (!running) throw new Error(`PostgreSQL did not start:\n${endOf(log)}`);
    if (performance.now() > deadline) {
      await killAllIn(data);
      throw new Error(`PostgreSQL was not ready within ${START_SECONDS} s:\n${endOf(log)}`);
    }
    await sleep(20);
  }

  return {
    pid,
    isRunning: () => running,
    stop: async (mode) => {
      child.ref();
      child.kill(SIGNALS[mode]);
      const timeout = new AbortController();
      const late = sleep(STOP_SECONDS * 1000, 'late', { signal: timeout.signal }).catch(() => 'aborted');
      const outcome = await Promise.race([ended, late]);
      timeout.abort();
      if (outcome === 'late') throw new Error(`PostgreSQL did not stop (${mode}) within ${STOP_SECONDS} s`);
    },
    kill: async () => {
      child.ref();
      await killAllIn(data);
      await ended;
    },
  };
}
