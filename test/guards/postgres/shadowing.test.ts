/** A program that puts look-alikes of PostgreSQL's own names in its way neither gains rights nor fools the guard. */
import type { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { guardSql } from '../../support/postgres/guard.ts';
import { type Database, SERVER_VERSIONS, sharedServer } from '../../support/postgres/index.ts';
import { refusal } from './support.ts';

/** Each look-alike notes as whom it runs, and answers what would let a write pass. */
const LOOK_ALIKES = `
  create schema evil;
  create table evil.ran_as (role text, what text);
  grant usage on schema evil to public;
  grant insert, select on evil.ran_as to public;
  create function evil.note(what pg_catalog.text) returns boolean language sql
    as $$ insert into evil.ran_as values (current_user, what); select true $$;
  create function evil.split_part(pg_catalog.text, pg_catalog.text, int) returns pg_catalog.text language sql
    as $$ select evil.note('split_part'); select pg_catalog.pg_current_xact_id()::pg_catalog.text $$;
  create function evil.current_setting(pg_catalog.text, boolean) returns pg_catalog.text language sql
    as $$ select evil.note('current_setting'); select pg_catalog.pg_current_xact_id()::pg_catalog.text || ':5' $$;
  create function evil.set_config(pg_catalog.text, pg_catalog.text, boolean) returns pg_catalog.text language sql
    as $$ select evil.note('set_config'); select $2 $$;
  create function evil.pg_current_xact_id_if_assigned() returns xid8 language sql
    as $$ select evil.note('xact'); select '3'::xid8 $$;
  create function evil.pg_advisory_xact_lock_shared(int, int) returns void language sql as $$ select evil.note('lock') $$;
  create function evil.nextval(regclass) returns bigint language sql as $$ select evil.note('nextval'); select 0::bigint $$;
  create function evil.same(pg_catalog.text, pg_catalog.text) returns boolean language sql as $$ select evil.note('=') $$;
  create function evil.less(bigint, bigint) returns boolean language sql as $$ select not evil.note('<') $$;
  create function evil.joined(pg_catalog.text, pg_catalog.text) returns pg_catalog.text language sql
    as $$ select evil.note('||'); select $1 $$;
  create operator evil.= (leftarg = pg_catalog.text, rightarg = pg_catalog.text, function = evil.same);
  create operator evil.<> (leftarg = pg_catalog.text, rightarg = pg_catalog.text, function = evil.same);
  create operator evil.~ (leftarg = pg_catalog.text, rightarg = pg_catalog.text, function = evil.same);
  create operator evil.< (leftarg = bigint, rightarg = bigint, function = evil.less);
  create operator evil.|| (leftarg = pg_catalog.text, rightarg = pg_catalog.text, function = evil.joined);
  create domain evil.text as pg_catalog.text check (evil.note('text'));
  create table shop.t (v int);
  create table shop.event (at int) partition by range (at);
  create table shop.event_1 partition of shop.event for values from (0) to (10);
  select kilit.protect('shop.t', 'shop/t');
  select kilit.protect('shop.event', 'shop/t')`;

const IN_THE_WAY = `
  set search_path = evil, pg_temp, pg_catalog;
  create temp table mark (id int, resource pg_catalog.text, setting pg_catalog.text, token bigint, mode pg_catalog.text);
  insert into mark values (1, 'shop/t', 'x', 1, 'observe');
  create temp table pg_trigger (tgrelid oid);
  create domain pg_temp.regclass as pg_catalog.text;
  delete from evil.ran_as`;

describe.each(SERVER_VERSIONS)('look-alikes on PostgreSQL %i', (version) => {
  let database: Database;
  let client: Client;
  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
    await database.query(`grant create on database ${database.name} to app; grant create on schema shop to app`);
    await database.query(LOOK_ALIKES, undefined, 'app');
    await database.query("select kilit.seal('shop/t', '5')", [], 'app');
    client = await database.connect('app');
    await client.query(IN_THE_WAY);
  });
  beforeEach(async () => {
    await client.query('rollback');
  });
  afterAll(async () => {
    await client.end();
    await database[Symbol.asyncDispose]();
  });

  const strangers = () => database.query("select role, what from evil.ran_as where role <> 'app'");

  test('are found first by a query of the program itself, so they can fail', async () => {
    const { rows } = await client.query("select 'a'::pg_catalog.text = 'b'::pg_catalog.text as same");
    expect(rows).toEqual([{ same: true }]);
    await client.query("select split_part('', '', 0)");
    const ran = await database.query('select distinct role, what from evil.ran_as order by what');
    expect(ran).toEqual([
      { role: 'app', what: '=' },
      { role: 'app', what: 'split_part' },
    ]);
  });

  test.each(['shop.t', 'shop.event', 'shop.event_1'])('do not let a write to %s pass', async (table) => {
    expect(await refusal(client.query(`insert into ${table} values (1)`))).toMatchObject({ code: 'KL004' });
    expect(await strangers()).toEqual([]);
  });

  test("do not let an old token enter, nor hinder the mark's", async () => {
    for (const call of [
      "enter('shop/t', '4')",
      "enter('shop/t', 4::bigint)",
      "seal('shop/t', '4')",
      "seal('shop/t', 4::bigint)",
    ]) {
      expect(await refusal(client.query(`select kilit.${call}`))).toMatchObject({ code: 'KL001' });
    }
    await client.query("begin; select kilit.enter('shop/t', '5'); insert into shop.t values (1)");
    await client.query('insert into shop.event_1 values (1)');
    const { rows } = await client.query("select kilit.entered('shop/t') as token");
    expect(rows).toEqual([{ token: '5' }]);
    await client.query('commit');
    expect(await strangers()).toEqual([]);
  });

  test('do not run with the rights of the guard in anything that a program may call', async () => {
    await client.query('select * from kilit.marks, kilit.protections; select * from kilit.refusals, kilit.changes');
    await client.query("select kilit.report_refusal('shop/t', '4'), kilit.seal('shop/new', '5')");
    await client.query(
      `create table shop.later partition of shop.event for values from (10) to (20);
       select kilit.unprotect('shop.t'), kilit.protect('shop.t'::pg_catalog.regclass, 'shop/t')`,
    );
    expect(await refusal(client.query('insert into shop.later values (11)'))).toMatchObject({ code: 'KL004' });
    expect(await database.query("select from kilit.protections where state <> 'enabled'")).toEqual([]);
    expect(await strangers()).toEqual([]);
  });

  test('a program that makes the schema before the install does not get the guard into its hands', async () => {
    const prepared = await sharedServer(version).createDatabase({ guard: false });
    await prepared.query(`grant create on database ${prepared.name} to app`);
    await prepared.query('create schema kilit', [], 'app');
    expect(await refusal(prepared.query(guardSql()))).toMatchObject({
      code: '42501',
      message: 'schema kilit belongs to role app, not to postgres',
    });
    await prepared.query('alter schema kilit owner to postgres');
    await prepared.query(guardSql());
    await prepared[Symbol.asyncDispose]();
  });
});
