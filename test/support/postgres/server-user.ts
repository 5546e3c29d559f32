/** The user that runs servers: PostgreSQL and pgbouncer refuse root. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';

/** For `spawn`; empty when this process is not root and so runs servers as itself. */
export interface ServerUser {
  readonly uid?: number;
  readonly gid?: number;
}

function inPasswd(name: string): ServerUser | undefined {
  const line = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .find((line) => line.startsWith(`${name}:`));
  const [, , uid, gid] = line?.split(':') ?? [];
  return uid === undefined ? undefined : { uid: Number(uid), gid: Number(gid) };
}

export function serverUser(): ServerUser {
  if (process.getuid?.() !== 0) return {};
  const user = inPasswd('postgres') ?? inPasswd('nobody');
  if (user === undefined)
    throw new Error("PostgreSQL refuses root, and there is neither a user 'postgres' nor 'nobody'");
  return user;
}

/** Whether the server's user can run this: its folder may lie below one that only root may enter. */
export const canRun = (command: string, ...args: readonly string[]): boolean =>
  spawnSync(command, args, { ...serverUser(), cwd: '/', stdio: 'ignore' }).status === 0;

/** Where servers keep their data: the system's folder for temporary files, if the server's user may enter it. */
export const dataParent = (): string => (canRun('test', '-x', tmpdir()) ? tmpdir() : '/tmp');

/** The environment of servers and clients: nothing of the caller's (`PGOPTIONS`, `PGHOST`, `LANG`) changes a test. */
export const cleanEnv = (): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '/usr/bin:/bin',
  LC_ALL: 'C.UTF-8',
  TZ: 'UTC',
});
