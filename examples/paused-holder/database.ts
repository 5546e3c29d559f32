/**
 * Starts PostgreSQL in a container with the two databases of this example, `guarded` and `unguarded`. For this example
 * only: the data is gone with the Pod.
 *
 *   PGDATA            the data directory; made when it is not there
 *   PGHOST            folder of the Unix socket, by which everybody in this container is the superuser
 *   BILLING_PASSWORD  of the role `billing`, which logs in from other Pods
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { appendFile, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { installSql } from 'kilit/guards/postgres';
import pg from 'pg';

const BIN = '/postgres/bin';
const SCHEMA = join(import.meta.dirname, 'schema.sql');
const START_SECONDS = 60;

const { PGDATA: data = '', PGHOST: sockets = '', BILLING_PASSWORD: password = '' } = process.env;
if (data === '' || sockets === '' || password === '')
  throw new Error('PGDATA, PGHOST and BILLING_PASSWORD must be set.');

const start = (dir: string, listen: string): ChildProcess =>
  spawn(
    join(BIN, 'postgres'),
    ['-D', dir, '-k', sockets, '-h', listen, '-c', 'track_commit_timestamp=on', '-c', 'shared_buffers=32MB'],
    { stdio: 'inherit' },
  );

/** SIGINT: PostgreSQL ends its sessions and stops. */
async function stop(server: ChildProcess): Promise<void> {
  server.kill('SIGINT');
  if (server.exitCode === null) await once(server, 'exit');
}

async function connect(database: string): Promise<pg.Client> {
  const until = Date.now() + START_SECONDS * 1000;
  for (;;) {
    const client = new pg.Client({ database, user: 'postgres' });
    try {
      await client.connect();
      return client;
    } catch (error) {
      if (Date.now() > until) throw error;
      await sleep(50);
    }
  }
}

async function statements(database: string, ...texts: readonly string[]): Promise<void> {
  const client = await connect(database);
  for (const text of texts) await client.query(text);
  await client.end();
}

/** Under another name until it is whole. It listens to nobody outside meanwhile, so the Pod is not ready. */
async function initialise(): Promise<void> {
  const dir = `${data}.new`;
  await rm(dir, { recursive: true, force: true });
  const options = [
    '--username=postgres',
    '--auth-local=trust',
    '--auth-host=scram-sha-256',
    '--no-locale',
    '--no-sync',
  ];
  const initdb = spawn(join(BIN, 'initdb'), ['--pgdata', dir, '--encoding=UTF8', ...options], { stdio: 'inherit' });
  const [code] = (await once(initdb, 'exit')) as [number | null];
  if (code !== 0) throw new Error(`initdb ended with ${code}.`);
  await appendFile(join(dir, 'pg_hba.conf'), 'host all billing all scram-sha-256\n');
  const server = start(dir, '');
  const schema = await readFile(SCHEMA, 'utf8');
  await statements(
    'postgres',
    'create role billing_owner',
    `create role billing login password ${pg.escapeLiteral(password)}`,
    'create database guarded',
    'create database unguarded',
  );
  await statements('guarded', installSql(), schema);
  await statements('unguarded', installSql(), schema, "select kilit.unprotect('charge')");
  await stop(server);
  await rename(dir, data);
}

if (!existsSync(data)) await initialise();
const server = start(data, '*');
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => void stop(server));
const [code] = (await once(server, 'exit')) as [number | null];
process.exitCode = code ?? 1;
