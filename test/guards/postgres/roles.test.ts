/** Who can pass by the guard on purpose, and who cannot. It is made against mistakes, by roles that may write anyway. */
import type { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, SERVER_VERSIONS, sharedServer } from '../../support/postgres/index.ts';
import { enterAnd, markOf, pidOf, refusal } from './support.ts';

const SCHEMA = `
  create table shop.t (v int);
  create table shop.event (at int) partition by range (at);
  create table shop.event_1 partition of shop.event for values from (0) to (10);
  insert into shop.t values (1);
  select kilit.protect('shop.t', 'shop/t');
  select kilit.protect('shop.event', 'shop/t')`;
const INSERT = 'insert into shop.t values (2)';
const FORGE = "set_config(kilit.setting_of('shop/t'), pg_current_xact_id()::text || ':5', ";

/** Each of these lets one write pass that nobody entered for. All are deliberate acts. */
const BYPASSES: readonly (readonly [what: string, role: string, statement: string, write: string])[] = [
  ['the owner by DISABLE TRIGGER', 'owner', 'alter table shop.t disable trigger kilit_statement', INSERT],
  ['the owner by DROP TRIGGER', 'owner', 'drop trigger kilit_statement on shop.t', INSERT],
  ['the owner by unprotect', 'owner', "select kilit.unprotect('shop.t')", INSERT],
  ['the owner by DROP TABLE', 'owner', 'select', 'drop table shop.t'],
  ['the owner by a rewrite of a column', 'owner', 'select', 'alter table shop.t alter v type int using 0'],
  [
    'the owner by DETACH of a partition and DROP',
    'owner',
    'alter table shop.event detach partition shop.event_1',
    'drop table shop.event_1',
  ],
  ['a superuser by session_replication_role', 'postgres', 'set session_replication_role = replica', INSERT],
  ['an administrator by observe', 'admin', "select kilit.set_mode('shop/t', 'observe')", INSERT],
  ['a program by a forged setting', 'app', `select ${FORGE}true)`, INSERT],
];

/** What a program tries in vain. */
const REFUSED: readonly string[] = [
  'alter table shop.t disable trigger kilit_statement',
  'drop trigger kilit_statement on shop.t',
  'drop table shop.t',
  'create rule pass as on insert to shop.t do instead nothing',
  'create trigger mine before insert on shop.t for each statement execute function kilit.check_write()',
  "select kilit.unprotect('shop.t')",
  "select kilit.reset('shop/t', '1', 'because')",
  "select kilit.set_mode('shop/t', 'observe')",
  'update kilit.mark set token = 1',
  'update kilit.marks set token = 1',
  'delete from kilit.refusals',
  'begin; lock table kilit.mark in share mode',
  'begin; lock table kilit.marks in access exclusive mode',
  "select kilit.raise_mark(1, 'shop/t', 1, 1, false)",
  "select kilit.enter_anew('shop/t', '1')",
  "select kilit.note_refusal('shop/t', 'stale', '1', 2, null)",
  "select setval('kilit.raising_1', 1)",
  "select nextval('kilit.refused_1')",
  'create or replace function kilit.check_write() returns trigger language plpgsql as $$ begin return null; end $$',
  'create function kilit.parse_token(token varchar) returns bigint language sql return 9',
  'drop function kilit.check_write() cascade',
  'drop schema kilit cascade',
  'drop event trigger kilit_new_children',
  'set session_replication_role = replica',
  'set role owner',
];

describe.each(SERVER_VERSIONS)('roles on PostgreSQL %i', (version) => {
  let database: Database;
  const open: Client[] = [];
  const connect = async (role: string): Promise<Client> => {
    const client = await database.connect(role);
    open.push(client);
    return client;
  };
  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
    await database.query(SCHEMA, undefined, 'owner');
    await database.query('grant insert on shop.t to admin; grant usage on schema shop to admin');
    await database.query("select kilit.seal('shop/t', '5')", [], 'app');
  });
  afterAll(async () => {
    await Promise.all(open.map((client) => client.end().catch(() => {})));
    await database[Symbol.asyncDispose]();
  });

  test.each(BYPASSES)('can be bypassed: %s', async (_what, role, statement, write) => {
    const client = await connect(role);
    if (write === INSERT) expect(await refusal(client.query(write))).toMatchObject({ code: 'KL004' });
    await client.query('begin');
    await client.query(statement);
    await client.query(write);
    await client.query('rollback');
  });

  test('can be bypassed: a program that a superuser let set session_replication_role', async () => {
    await database.query('grant set on parameter session_replication_role to app2');
    const client = await connect('app2');
    await client.query('begin; set local session_replication_role = replica');
    await client.query(INSERT);
    await client.query('rollback');
    await database.query('revoke set on parameter session_replication_role from app2');
  });

  test.each(REFUSED)('a program may not: %s', async (statement) => {
    expect(await refusal(database.query(statement, undefined, 'app'))).toMatchObject({ code: '42501' });
    expect(await markOf(database, 'shop/t')).toBe('5');
    expect(await database.query("select from kilit.protections where state <> 'enabled'")).toEqual([]);
  });

  test('a program may not move a table of another to a resource of its own, though it may protect again', async () => {
    await database.query("select kilit.protect('shop.t', 'shop/t')", undefined, 'app'); // Nothing to do.
    expect(
      await refusal(database.query("select kilit.protect('shop.t', 'shop/mine')", undefined, 'app')),
    ).toMatchObject({
      code: 'KL002',
    });
    expect(await markOf(database, 'shop/mine')).toBeUndefined();
  });

  test('a setting that outlives its transaction does not count, nor does a lock of the table', async () => {
    const client = await connect('app');
    const [row] = await database.query<{ setting: string }>("select kilit.setting_of('shop/t') as setting");
    for (const value of ['5', '1:5', ':5', '', ':', '-:5']) {
      await client.query(`set ${row?.setting} = '${value}'`);
      expect(await refusal(client.query(INSERT))).toMatchObject({ code: 'KL004' });
      expect(await refusal(client.query('insert into shop.event_1 values (1)'))).toMatchObject({ code: 'KL004' });
    }
    await client.query(`select ${FORGE}false)`);
    expect(await refusal(client.query(INSERT))).toMatchObject({ code: 'KL004' });
    await client.query('begin; lock table shop.t');
    expect(await refusal(client.query(INSERT))).toMatchObject({ code: 'KL004' });
    await client.query('rollback');
  });

  test('a detached partition keeps its statement trigger', async () => {
    const client = await connect('owner');
    for (const write of ['insert into shop.event_1 values (1)', 'truncate shop.event_1']) {
      await client.query('begin; alter table shop.event detach partition shop.event_1');
      expect(await refusal(client.query(write))).toMatchObject({ code: 'KL004' });
      await client.query('rollback');
    }
  });

  test('a program can shut out others: it may raise any mark, and keep the advisory lock, which seal names', async () => {
    const [client, other] = [await connect('app'), await connect('app2')];
    await enterAnd(client, 'shop/victim', '5');
    await other.query("select kilit.seal('shop/victim', '1000000000000005')");
    expect(await refusal(enterAnd(client, 'shop/victim', '6'))).toMatchObject({ code: 'KL001' });
    await database.query("select kilit.reset('shop/victim', '6', 'a wrong token got in')", [], 'admin');
    await other.query(
      "select pg_advisory_lock(1802071145, id) from kilit.marks, generate_series(1, 100) id where resource = 'shop/victim'",
    );
    expect(await refusal(client.query("select kilit.seal('shop/victim', '7', '0')"))).toMatchObject({
      code: 'KL005',
      message: expect.stringContaining(`blocked by session ${await pidOf(other)} of role app2`),
    });
  });
});
