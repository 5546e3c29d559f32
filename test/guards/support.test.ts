import pg from 'pg';
import { describe, expect, it } from 'vitest';
import { run } from '../../tools/cluster/exec.ts';
import { openPgBouncer, openServer, program, SERVER_VERSIONS, sharedServer } from '../support/postgres/index.ts';

describe.each(SERVER_VERSIONS)('the shared PostgreSQL %i', (version) => {
  it('answers with its version', async () => {
    await using database = await sharedServer(version).createDatabase({ guard: false });
    const [row] = await database.query('show server_version_num');
    expect(Math.floor(Number(row?.server_version_num) / 10_000)).toBe(version);
  });
});

describe('a database', () => {
  it('is reached by psql, which tells whether a statement failed', async () => {
    await using database = await sharedServer().createDatabase({ guard: false });
    expect(await database.psql('select 40 + 2;')).toEqual({ code: 0, stdout: '42\n', stderr: '' });
    expect(await database.psql('select 1/0; select 1;')).toMatchObject({ code: 3, stdout: '' });
  });

  it('is reached by pgbench', async () => {
    await using database = await sharedServer().createDatabase({ guard: false });
    await run(program('pgbench'), ['--initialize', '--init-steps=dt', database.url()]);
    expect(await database.query('select from pgbench_accounts')).toEqual([]);
  });

  it('lets a program write to the tables of the schema shop, and read nothing else', async () => {
    await using database = await sharedServer().createDatabase({ guard: false });
    await database.query('create table charge (id bigint)', [], 'owner');
    await database.query('create table public.secret (id bigint)', [], 'postgres');
    await database.query('insert into charge values ($1)', [2n ** 53n + 1n], 'app');
    expect(await database.query('select id from shop.charge', [], 'app2')).toEqual([{ id: '9007199254740993' }]);
    await expect(database.query('select from secret', [], 'app')).rejects.toMatchObject({ code: '42501' });
    await expect(database.query('create table mine ()', [], 'app')).rejects.toMatchObject({ code: '42501' });
  });
});

describe.each(SERVER_VERSIONS)('a PostgreSQL %i of its own', (version) => {
  it('keeps its data when it is killed and started again', async () => {
    await using server = await openServer({ version, settings: { fsync: 'on', work_mem: '5MB' } });
    const database = await server.createDatabase({ guard: false });
    await database.query('create table kept as select 7 as seven');
    const session = await database.connect();
    const killed = server.pid;
    await server.kill();
    await expect(session.query('select 1')).rejects.toBeInstanceOf(Error);
    await expect(database.query('select 1')).rejects.toMatchObject({ code: 'ECONNREFUSED' });

    await server.restart({ work_mem: '6MB' });
    expect(server.pid).not.toBe(killed);
    expect(server.log()).toContain('database system was not properly shut down');
    expect(await database.query('select seven from kept')).toEqual([{ seven: 7 }]);
    const [row] = await database.query(`select current_setting('fsync') fsync, current_setting('work_mem') work_mem`);
    expect(row).toEqual({ fsync: 'on', work_mem: '6MB' });
  });
});

describe('a standby', () => {
  it('has what was written to its primary, and takes writes when it is promoted', async () => {
    await using primary = await openServer();
    const database = await primary.createDatabase({ guard: false });
    await database.query('create table kept as select 7 as seven');
    await using standby = await openServer({ standbyOf: primary });
    const there = new pg.Client({ host: standby.host, port: standby.port, user: 'postgres', database: database.name });
    await there.connect();
    expect((await there.query('select seven from kept')).rows).toEqual([{ seven: 7 }]);
    await expect(there.query('delete from kept')).rejects.toMatchObject({ code: '25006' });
    await there.query('select pg_promote()');
    expect((await there.query('delete from kept')).rowCount).toBe(1);
    await there.end();
  });
});

describe('pgbouncer in transaction mode', () => {
  it('gives the server connection to another client between two transactions', async () => {
    const server = sharedServer();
    await using database = await server.createDatabase({ guard: false });
    await using bouncer = await openPgBouncer(server, { poolMode: 'transaction', poolSize: 1 });
    const clients = [1, 2].map(() => new pg.Client({ connectionString: bouncer.url(database, 'app') }));
    const pids: unknown[] = [];
    for (const client of clients) {
      await client.connect();
      const { rows } = await client.query('select pg_backend_pid() as pid, current_user as role');
      expect(rows[0].role).toBe('app');
      pids.push(rows[0].pid);
    }
    expect(pids[0]).toBe(pids[1]);
    for (const client of clients) await client.end();
  });
});
