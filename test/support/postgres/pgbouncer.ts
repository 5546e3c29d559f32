/** pgbouncer in front of a server. */
import { spawn } from 'node:child_process';
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { ensurePrograms, program } from './debian-programs.ts';
import { openFolder } from './folder.ts';
import { freePort } from './port.ts';
import type { ServerAddress } from './server.ts';
import { cleanEnv, serverUser } from './server-user.ts';

const START_SECONDS = 10;
const ROLES = ['postgres', 'app', 'app2', 'owner', 'admin'];

export interface PgBouncerOptions {
  readonly poolMode: 'session' | 'transaction' | 'statement';
  /** Server connections for each pair of database and role. @default 5 */
  readonly poolSize?: number;
}

export interface PgBouncer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** The database as it is reached through pgbouncer. @default role 'postgres' */
  url(database: { readonly name: string }, role?: string): string;
}

const configuration = (server: ServerAddress, port: number, { poolMode, poolSize = 5 }: PgBouncerOptions): string => `
[databases]
* = host=${server.host} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = users.txt
pool_mode = ${poolMode}
default_pool_size = ${poolSize}
max_client_conn = 500
`;

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('error', () => resolve(false)).once('connect', () => resolve(true));
    socket.once('connect', () => socket.destroy());
  });

/** Starts pgbouncer for all databases of a server. Dispose of it before the server. */
export async function openPgBouncer(server: ServerAddress, options: PgBouncerOptions): Promise<PgBouncer> {
  await ensurePrograms();
  const folder = openFolder('kilit-pgbouncer-');
  const port = await freePort();
  writeFileSync(join(folder.path, 'users.txt'), ROLES.map((role) => `"${role}" ""\n`).join(''));
  writeFileSync(join(folder.path, 'pgbouncer.ini'), configuration(server, port, options));
  const log = join(folder.path, 'pgbouncer.log');
  const output = openSync(log, 'a');
  const child = spawn(program('pgbouncer'), ['pgbouncer.ini'], {
    ...serverUser(),
    cwd: folder.path,
    detached: true,
    env: cleanEnv(),
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  let running = true;
  child.once('error', () => (running = false)).once('exit', () => (running = false));
  child.unref();
  const deadline = performance.now() + START_SECONDS * 1000;
  while (!(await accepts(port))) {
    if (!running || performance.now() > deadline) {
      const said = readFileSync(log, 'utf8').trim();
      await folder.close();
      throw new Error(`pgbouncer did not start:\n${said}`);
    }
    await sleep(20);
  }
  return {
    host: '127.0.0.1',
    port,
    url: (database, role = 'postgres') => `postgresql://${role}@127.0.0.1:${port}/${database.name}`,
    [Symbol.asyncDispose]: () => folder.close(),
  };
}
