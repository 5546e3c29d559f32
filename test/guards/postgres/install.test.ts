/** Installing the guard where not everything is allowed, in several databases at once, and taking it away again. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { guardSql, uninstallSql } from '../../support/postgres/guard.ts';
import { type Database, openServer, type Server } from '../../support/postgres/index.ts';
import { EDGE_VERSIONS } from './edge-versions.ts';
import { enterAnd, markOf, pidOf, refusal } from './support.ts';

const TABLES = `
  create schema store; grant usage on schema store to app;
  create table store.event (at int) partition by range (at);
  create table store.event_1 partition of store.event for values from (0) to (10);
  grant all on all tables in schema store to app;
  select kilit.protect('store.event', 'shop/t');
  create table store.event_2 partition of store.event for values from (10) to (20); grant all on store.event_2 to app`;
const inOneTransaction = (sql: string): string => `begin;\n${sql}\ncommit;\n`;

describe.each(EDGE_VERSIONS)('installs on PostgreSQL %i', (version) => {
  let server: Server;
  let databases: Database[];
  beforeAll(async () => {
    server = await openServer({ version });
    databases = [];
    for (let n = 0; n < 3; n += 1) databases.push(await server.createDatabase({ guard: false }));
    const [first, second] = databases as [Database, Database];
    await first.query(`create role creator login createrole; create role plain login;
      alter database ${first.name} owner to creator; alter database ${second.name} owner to plain`);
  });
  afterAll(() => server[Symbol.asyncDispose]());
  const database = (index: number): Database => databases[index] as Database;
  const roles = async () =>
    (await database(0).query("select rolname from pg_roles where rolname like 'kilit%' order by 1")).map(
      (r) => r['rolname'],
    );

  test('a database owner without CREATEROLE is told which roles to ask for, and changes nothing', async () => {
    expect(await refusal(database(1).query(guardSql(), undefined, 'plain'))).toMatchObject({
      code: '42501',
      message: 'Role kilit_reader does not exist, and plain may not create it',
      hint: expect.stringContaining('create role kilit_reader nologin; create role kilit_writer nologin;'),
    });
    expect(await roles()).toEqual([]);
    expect(await database(1).query("select from pg_namespace where nspname = 'kilit'")).toEqual([]);
  });

  test('a database owner with CREATEROLE installs, is told of the event trigger, and installs again', async () => {
    for (let round = 0; round < 2; round += 1) {
      const installed = await database(0).psql(inOneTransaction(guardSql()), 'creator');
      expect(installed).toMatchObject({ code: 0, stderr: expect.stringContaining('NOTICE:  kilit: no event trigger') });
    }
    await database(0).query('grant kilit_writer to app; create schema shop2 authorization app', undefined, 'postgres');
    await database(0).query("select kilit.seal('shop/t', '5')", [], 'app');
    expect(await roles()).toEqual(['kilit_admin', 'kilit_reader', 'kilit_writer']);
    expect(await refusal(database(0).query(guardSql()))).toMatchObject({
      message: 'schema kilit belongs to role creator, not to postgres',
      hint: expect.stringContaining('set role creator'),
    });
    await database(0).query(`set role creator; ${guardSql()}`);
    expect(await markOf(database(0), 'shop/t')).toBe('5');
  });

  test('where the roles exist, a database owner without CREATEROLE installs as well', async () => {
    expect(await database(1).psql(inOneTransaction(guardSql()), 'plain')).toMatchObject({ code: 0 });
  });

  test('without the event trigger TRUNCATE of a later partition passes until protect runs again', async () => {
    await database(1).query(TABLES, undefined, 'plain');
    const states = () => database(1).query("select table_name from kilit.protections where state = 'incomplete'");
    const write = (sql: string) => database(1).query(sql, undefined, 'app');
    for (const refused of [
      'insert into store.event values (1)',
      'truncate store.event_1',
      'insert into store.event_2 values (11)',
    ]) {
      expect(await refusal(write(refused))).toMatchObject({ code: 'KL004' });
    }
    await write('truncate store.event_2');
    expect(await states()).toEqual([{ table_name: 'store.event_2' }]);
    await database(1).query("select kilit.protect('store.event', 'shop/t')", undefined, 'plain');
    expect(await refusal(write('truncate store.event_2'))).toMatchObject({ code: 'KL004' });
    expect(await states()).toEqual([]);
  });

  test('seal ends sessions of other roles only with pg_signal_backend, and never those of a superuser', async () => {
    const frozen = { app: await database(1).connect('app'), postgres: await database(1).connect() };
    const seal = (token: string) =>
      database(1).query("select kilit.seal('shop/t', $1::text, '0') as ended", [token], 'app');
    const freeze = async (role: 'app' | 'postgres', token: string): Promise<void> => {
      await enterAnd(frozen[role], 'shop/t', token);
      await frozen[role].query('begin');
      await frozen[role].query("select kilit.enter('shop/t', $1::text)", [token]);
    };
    await freeze('app', '5');
    expect(await refusal(seal('6'))).toMatchObject({
      code: 'KL005',
      message: expect.stringContaining(`blocked by session ${await pidOf(frozen.app)} of role app`),
      hint: expect.stringContaining('pg_signal_backend'),
    });
    await database(1).query('grant pg_signal_backend to plain');
    expect(await seal('6')).toEqual([{ ended: 1 }]);
    await freeze('postgres', '7');
    expect(await refusal(seal('8'))).toMatchObject({
      code: 'KL005',
      message: expect.stringContaining(`blocked by session ${await pidOf(frozen.postgres)} of role postgres`),
    });
    expect(await markOf(database(1), 'shop/t')).toBe('7');
    await frozen.postgres.end();
  });

  test('uninstall leaves the roles while another database uses them, and takes them away in the last', async () => {
    const first = await database(1).psql(inOneTransaction(uninstallSql()), 'plain');
    expect(first).toMatchObject({ code: 0, stderr: expect.stringContaining('NOTICE:  kilit: role kilit_admin stays') });
    expect(await roles()).toHaveLength(3);
    await database(1).query('insert into store.event values (1)', undefined, 'app');
    expect(await database(0).psql(inOneTransaction(uninstallSql()), 'creator')).toMatchObject({ code: 0 });
    expect(await roles()).toEqual([]);
    expect(await database(0).psql(inOneTransaction(uninstallSql()))).toMatchObject({ code: 0 });
  });

  test.each([
    ['no role is there', 'select'],
    [
      'the roles are there, without their memberships',
      'create role kilit_reader; create role kilit_writer; create role kilit_admin',
    ],
    ['one role is there', 'create role kilit_writer'],
  ])('three databases at once install when %s', async (_case, before) => {
    for (let round = 0; round < 4; round += 1) {
      await database(2).query(before);
      await Promise.all(databases.map((each) => each.query(guardSql())));
      expect(await roles()).toHaveLength(3);
      expect(await database(2).query("select pg_has_role('kilit_admin', 'kilit_reader', 'usage') as member")).toEqual([
        { member: true },
      ]);
      for (const each of databases) await each.query(uninstallSql());
      expect(await roles()).toEqual([]);
    }
  });
});
