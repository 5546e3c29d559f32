/** Databases for tests, with login roles and, by default, the guard. */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { guardSql } from './guard.ts';
import { type PsqlResult, psql } from './psql.ts';
import type { ServerAddress } from './server.ts';

export interface DatabaseOptions {
  /** Installs the SQL of `src/guards/postgres` and grants its roles. @default true */
  readonly guard?: boolean;
}

/**
 * A database of one test file. `role` is `app`, `app2` (programs), `owner` (of the schema `shop`, whose tables programs
 * may read and write), `admin` or, by default, the superuser `postgres`.
 */
export interface Database extends AsyncDisposable {
  readonly name: string;
  url(role?: string): string;
  /** In a session and transaction of its own; bigint comes as text. Throws `pg.DatabaseError` with its SQLSTATE as `code`. */
  query<Row extends pg.QueryResultRow>(text: string, values?: readonly unknown[], role?: string): Promise<Row[]>;
  /** The caller ends it. When the server goes away, the next query fails; no `error` event ends the test run. */
  connect(role?: string): Promise<pg.Client>;
  psql(sql: string, role?: string): Promise<PsqlResult>;
}

const LOGIN_ROLES: readonly string[] = ['app', 'app2', 'owner', 'admin'];
/** Key of an advisory lock in the database `postgres`: roles belong to the server, so installs take turns. */
const INSTALL_LOCK = 4711;

const urlOf = ({ host, port }: ServerAddress, database: string, role: string): string =>
  `postgresql://${role}@${host}:${port}/${database}`;

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect(url);
  try {
    return await work(client);
  } finally {
    await client.end().catch(() => {});
  }
}

/** Once for each server; harmless again. */
export async function createLoginRoles(server: ServerAddress): Promise<void> {
  await withClient(urlOf(server, 'postgres', 'postgres'), async (client) => {
    const { rows } = await client.query<{ rolname: string }>('select rolname from pg_roles');
    const there = new Set(rows.map((row) => row.rolname));
    for (const role of LOGIN_ROLES.filter((role) => !there.has(role))) await client.query(`create role ${role} login`);
  });
}

const schemaSql = (database: string): string => `
  create schema shop authorization owner;
  grant usage on schema shop to app, app2;
  alter default privileges for role owner in schema shop grant select, insert, update, delete on tables to app, app2;
  alter default privileges for role owner in schema shop grant usage on sequences to app, app2;
  ${LOGIN_ROLES.map((role) => `alter role ${role} in database ${database} set search_path = shop, public;`).join('\n')}
`;

async function installGuard(server: ServerAddress, database: string): Promise<void> {
  await withClient(urlOf(server, 'postgres', 'postgres'), async (turn) => {
    await turn.query('select pg_advisory_lock($1)', [INSTALL_LOCK]);
    await withClient(urlOf(server, database, 'postgres'), async (client) => {
      await client.query(guardSql());
      await client.query('grant kilit_writer to app, app2, owner; grant kilit_admin to admin');
    });
  });
}

/** Makes a database with a new name. Disposing of it drops it, with its sessions; a shared server's end does so too. */
export async function createDatabase(server: ServerAddress, options: DatabaseOptions = {}): Promise<Database> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  const url = (role = 'postgres'): string => urlOf(server, name, role);
  const admin = urlOf(server, 'postgres', 'postgres');
  await withClient(admin, (client) => client.query(`create database ${name}`));
  await withClient(url(), (client) => client.query(schemaSql(name)));
  if (options.guard ?? true) await installGuard(server, name);
  return {
    name,
    url,
    query: async (text, values = [], role = 'postgres') =>
      withClient(url(role), async (client) => (await client.query(text, [...values])).rows),
    connect: (role) => connect(url(role)),
    psql: (sql, role) => psql(url(role), sql),
    [Symbol.asyncDispose]: async () => {
      // A prepared transaction or a slot keeps it, and a stopped server too: then it goes with the server.
      await withClient(admin, (client) => client.query(`drop database ${name} with (force)`)).catch(() => {});
    },
  };
}
