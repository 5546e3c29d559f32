/** Tables that become part of a tree after they were protected, and trees that no resource can protect. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, sharedServer } from '../../support/postgres/index.ts';
import { EDGE_VERSIONS } from './edge-versions.ts';
import { enterAnd, refusal } from './support.ts';

describe.each(EDGE_VERSIONS)('trees of tables on PostgreSQL %i', (version) => {
  let database: Database;
  const asOwner = (sql: string) => database.query(sql, [], 'owner');
  const protect = (table: string, resource: string) => asOwner(`select kilit.protect('shop.${table}', '${resource}')`);
  const insert = (table: string) => database.query(`insert into ${table} values (1)`, [], 'app');
  const state = async (table: string) =>
    (await database.query('select state from kilit.protections where table_name = $1', [`shop.${table}`]))[0]?.state;

  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
  });
  afterAll(() => database[Symbol.asyncDispose]());

  test('a protected table that is attached to an unprotected one refuses writes through it', async () => {
    await asOwner('create table shop.leaf (v int)');
    await protect('leaf', 'trees/a');
    await asOwner(
      'create table shop.root (v int) partition by range (v); alter table shop.root attach partition shop.leaf for values from (0) to (9)',
    );
    expect(await refusal(insert('shop.root'))).toMatchObject({ code: 'KL004' });
    expect(await state('leaf')).toBe('enabled');
    await enterAnd(await database.connect('app'), 'trees/a', '5', 'insert into shop.root values (1)');
  });

  test('the same with a table that gets an unprotected parent by INHERIT', async () => {
    await asOwner('create table shop.heir (v int); create table shop.elder (v int)');
    await protect('heir', 'trees/a');
    await asOwner('alter table shop.heir inherit shop.elder');
    await asOwner('insert into shop.heir values (1)').catch(() => {});
    expect(
      await refusal(database.query('update shop.elder set v = 2', [], 'app').then(() => insert('shop.heir'))),
    ).toMatchObject({ code: 'KL004' });
    expect(await state('heir')).toBe('enabled');
  });

  test('a protected partitioned table can be attached to another of the same resource', async () => {
    await asOwner(
      'create table shop.upper (v int) partition by range (v); create table shop.lower (v int) partition by range (v); create table shop.lowest partition of shop.lower for values from (0) to (9)',
    );
    await protect('upper', 'trees/a');
    await protect('lower', 'trees/a');
    await asOwner('alter table shop.upper attach partition shop.lower for values from (0) to (9)');
    expect(await refusal(insert('shop.upper'))).toMatchObject({ code: 'KL004' });
    await enterAnd(await database.connect('app'), 'trees/a', '5', 'insert into shop.upper values (1)');
  });

  test('a child that CREATE SCHEMA makes is protected', async () => {
    await asOwner('create table shop.parent (v int)');
    await protect('parent', 'trees/a');
    await database.query(
      'create schema other authorization owner create table child () inherits (shop.parent); grant usage on schema other to app; grant insert on other.child to app',
    );
    expect(await refusal(insert('other.child'))).toMatchObject({ code: 'KL004' });
  });

  test('a tree is protected by one resource', async () => {
    await asOwner(
      'create table shop.pa (v int); create table shop.pb (v int); create table shop.joint () inherits (shop.pa, shop.pb)',
    );
    await protect('pa', 'trees/a');
    const answer = { code: 'KL002', message: expect.stringContaining("shop.joint is already protected by 'trees/a'") };
    expect(await refusal(protect('pb', 'trees/b'))).toMatchObject(answer);
    await asOwner('create table shop.pc (v int)');
    await protect('pc', 'trees/c');
    const twice = asOwner('create table shop.twice () inherits (shop.pa, shop.pc)');
    expect(await refusal(twice)).toMatchObject({
      code: 'KL002',
      message: expect.stringContaining('is already protected by'),
    });
  });

  test('a foreign table is refused, also as a partition: its server commits by itself', async () => {
    await database.query(
      'create extension if not exists postgres_fdw; create server if not exists far foreign data wrapper postgres_fdw',
    );
    await database.query('create foreign table shop.away (v int) server far');
    const answer = { code: 'KL002', message: expect.stringContaining('is a foreign table') };
    expect(await refusal(database.query("select kilit.protect('shop.away', 'trees/a')"))).toMatchObject(answer);
    await database.query('create table shop.near (v int) partition by range (v)');
    await database.query("select kilit.protect('shop.near', 'trees/a')");
    const attach = 'alter table shop.near attach partition shop.away for values from (0) to (9)';
    expect(await refusal(database.query(attach))).toMatchObject(answer);
  });
});
