/** Folders that never outlive this process, nor do the servers that run in them. */
import { spawn } from 'node:child_process';
import { chownSync, mkdtempSync, readdirSync, readlinkSync, realpathSync } from 'node:fs';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { dataParent, serverUser } from './server-user.ts';

/**
 * Waits until the process that started it closes the pipe or dies, however that happens; then ends every process that
 * works in the folder (2 s of SIGQUIT, then SIGKILL), frees the shared memory of a server that was killed, and removes
 * the folder. A shell, so that it costs a megabyte.
 */
const KEEPER = `
trap '' HUP INT TERM QUIT
read -r _
pids() { find /proc -maxdepth 2 -path '/proc/[0-9]*/cwd' '(' -lname "$1" -o -lname "$1/*" ')' -printf '%h\\n' 2>/dev/null | cut -d/ -f3; }
signal=QUIT
for try in $(seq 40); do
  left=$(pids "$1")
  [ -z "$left" ] && break
  [ "$try" -gt 20 ] && signal=KILL
  kill -$signal $left 2>/dev/null
  sleep 0.1
done
sed -n 7p "$1/data/postmaster.pid" 2>/dev/null | { read -r _ segment && ipcrm -m "$segment" 2>/dev/null; }
rm -rf "$1"
`;

export interface Folder extends AsyncDisposable {
  readonly path: string;
  /** Ends what still works in it and removes it. */
  close(): Promise<void>;
}

/** Makes an empty folder that belongs to the server's user. */
export function openFolder(prefix: string): Folder {
  const path = realpathSync(mkdtempSync(join(dataParent(), prefix)));
  const { uid, gid } = serverUser();
  if (uid !== undefined && gid !== undefined) chownSync(path, uid, gid);
  // A session of its own: neither Ctrl-C nor the end of vitest's process group reaches it.
  const keeper = spawn('sh', ['-c', KEEPER, 'keeper', path], {
    cwd: '/',
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  });
  const ended = new Promise<void>((resolve, reject) => {
    keeper.once('error', reject).once('exit', () => resolve());
  });
  ended.catch(() => {}); // Reported by close().
  keeper.unref();
  (keeper.stdin as Socket).unref();
  const close = (): Promise<void> => {
    keeper.ref();
    keeper.stdin.end();
    return ended;
  };
  return { path, close, [Symbol.asyncDispose]: close };
}

/** The processes whose working directory is this one: a postmaster and all its children. */
export function pidsIn(path: string): readonly number[] {
  const worksThere = (pid: string): boolean => {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === path;
    } catch {
      return false; // Ended meanwhile, or another user's.
    }
  };
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  return pids.filter(worksThere).map(Number);
}

/**
 * SIGKILL to every process that works in the folder, again until there is none; throws when some survive for 10 s.
 *
 * A postmaster is among them, and dies in the first round: nothing starts more.
 */
export async function killAllIn(path: string): Promise<void> {
  const kill = (pid: number): void => {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // Gone already.
    }
  };
  const deadline = performance.now() + 10_000;
  for (let pids = pidsIn(path); pids.length > 0; pids = pidsIn(path)) {
    if (performance.now() > deadline) throw new Error(`Processes survived SIGKILL for 10 s: ${pids.join(', ')}`);
    for (const pid of pids) kill(pid);
    await sleep(5);
  }
}
