/** The order of locks in kilit.enter, at each isolation level. */
import type { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, SERVER_VERSIONS, sharedServer } from '../../support/postgres/index.ts';
import { enterAnd, markOf, refusal, someoneWaits } from './support.ts';

const enter = (client: Client, resource: string, token: string) =>
  client.query('select kilit.enter($1::text, $2::text)', [resource, token]);

describe.each(SERVER_VERSIONS)('enter on PostgreSQL %i', (version) => {
  let database: Database;
  let a: Client;
  let b: Client;
  let c: Client;
  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
    await database.query('create table shop.t (v int)', [], 'owner');
    [a, b, c] = [await database.connect('app'), await database.connect('app'), await database.connect('app2')];
  });
  afterAll(async () => {
    await Promise.all([a, b, c].map((client) => client.end()));
    await database[Symbol.asyncDispose]();
  });

  test('lets the transactions of one holder run side by side', async () => {
    await enterAnd(a, 'side/a', '5');
    await a.query('begin');
    await enter(a, 'side/a', '5');
    await enterAnd(b, 'side/a', '5', 'insert into t values (1)');
    await a.query('commit');
  });

  test.each(['read committed', 'repeatable read', 'serializable'])(
    'makes a greater token wait for the open transactions of older ones, and refuses them from then on (%s)',
    async (isolation) => {
      const resource = `wait/${isolation}`;
      await enterAnd(a, resource, '5');
      await a.query(`begin isolation level ${isolation}`);
      await enter(a, resource, '5');
      const raising = enterAnd(b, resource, '6');
      await someoneWaits(database);
      await a.query('insert into t values (2)');
      await a.query('commit');
      await raising;
      await a.query(`begin isolation level ${isolation}`);
      expect(await refusal(enter(a, resource, '5'))).toMatchObject({ code: 'KL001' });
      await a.query('rollback');
    },
  );

  test('serves a greater token before equal ones that come after it: a busy holder cannot starve the next', async () => {
    await enterAnd(a, 'fair/a', '5');
    await a.query('begin');
    await enter(a, 'fair/a', '5');
    const raising = enterAnd(b, 'fair/a', '6');
    await someoneWaits(database);
    const late = refusal(enterAnd(c, 'fair/a', '5'));
    await a.query('commit');
    await raising;
    expect(await late).toMatchObject({
      code: 'KL001',
      message: "stale fencing token 5 for 'fair/a': the newest seen is 6",
    });
  });

  test.each(['repeatable read', 'serializable'])(
    'refuses an old token although the transaction has a snapshot from before the mark was raised (%s)',
    async (isolation) => {
      const resource = `snapshot/${isolation}`;
      await enterAnd(a, resource, '5');
      await a.query(`begin isolation level ${isolation}`);
      await a.query('select count(*) from t');
      await enterAnd(b, resource, '6');
      expect(await refusal(enter(a, resource, '5'))).toMatchObject({
        code: '40001',
        message: expect.stringContaining('could not serialize access'),
      });
      await a.query('rollback');
      expect(await refusal(enterAnd(a, resource, '5'))).toMatchObject({ code: 'KL001' });
    },
  );

  test('refuses an old token whose READ COMMITTED transaction began before the mark was raised', async () => {
    await enterAnd(a, 'snapshot/rc', '5');
    await a.query('begin');
    await a.query('select count(*) from t');
    await enterAnd(b, 'snapshot/rc', '6');
    expect(await refusal(enter(a, 'snapshot/rc', '5'))).toMatchObject({ code: 'KL001' });
    await a.query('rollback');
  });

  test('keeps the mark when the transaction that raised it is rolled back', async () => {
    await enterAnd(a, 'back/a', '5');
    await a.query('begin');
    await enter(a, 'back/a', '6');
    await a.query('rollback');
    expect(await markOf(database, 'back/a')).toBe('5');
    await enterAnd(b, 'back/a', '5', 'insert into t values (3)');
  });

  test('raises the mark within a transaction, and refuses to go back in it', async () => {
    await a.query('begin');
    await enter(a, 'twice/a', '5');
    await enter(a, 'twice/a', '7');
    expect(await refusal(enter(a, 'twice/a', '5'))).toMatchObject({ code: 'KL001' });
    await a.query('rollback');
    expect(await markOf(database, 'twice/a')).toBeUndefined();
  });

  test('lets two sessions meet at a resource that nobody has used', async () => {
    await a.query('begin');
    await enter(a, 'new/a', '5');
    const second = enterAnd(b, 'new/a', '6');
    await someoneWaits(database);
    await a.query('commit');
    await second;
    expect(await markOf(database, 'new/a')).toBe('6');
  });

  test('refuses who is no member of kilit_writer', async () => {
    expect(await refusal(database.query('select count(*) from kilit.mark', [], 'app'))).toMatchObject({
      code: '42501',
    });
    expect(await refusal(database.query('update kilit.marks set token = 9', [], 'app'))).toMatchObject({
      code: '42501',
    });
    expect(await refusal(database.query("select kilit.reset('new/a', '1', 'because')", [], 'app'))).toMatchObject({
      code: '42501',
    });
    expect(await refusal(database.query("select kilit.set_mode('new/a', 'observe')", [], 'app'))).toMatchObject({
      code: '42501',
    });
    await database.query('create role stranger login').catch(() => {});
    expect(await refusal(database.query("select kilit.enter('new/a', '6')", [], 'stranger'))).toMatchObject({
      code: '42501',
    });
  });
});
