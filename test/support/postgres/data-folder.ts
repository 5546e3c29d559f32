/** How a server's data directory comes into being. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { program } from './debian-programs.ts';
import type { ServerAddress } from './server.ts';
import { cleanEnv, serverUser } from './server-user.ts';

const execute = promisify(execFile);

const asServerUser = (command: string, args: readonly string[]): Promise<unknown> =>
  execute(command, args, { ...serverUser(), cwd: '/', env: cleanEnv() });

/** An empty one, superuser `postgres`, everybody on this machine trusted. */
export async function initialise(bin: string, data: string): Promise<void> {
  const format = ['-E', 'UTF8', '--locale=C', '--no-sync', '--no-instructions'];
  await asServerUser(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', ...format]);
}

/** A copy of a running server that will follow it. Debian's pg_basebackup: the server must not be newer than it. */
export async function copyForStandby({ host, port }: ServerAddress, data: string): Promise<void> {
  const from = ['-h', host, '-p', String(port), '-U', 'postgres'];
  await asServerUser(program('pg_basebackup'), [...from, '-D', data, '-R', '-X', 'stream', '-c', 'fast', '--no-sync']);
}
