/** A pool whose connection was given back inside a transaction. */
import { postgresGuard } from 'kilit/guards/postgres';
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Database, sharedServer } from '../../support/postgres/index.ts';
import { lockError } from './support.ts';

let database: Database;
let pool: pg.Pool;
beforeAll(async () => {
  database = await sharedServer().createDatabase();
  await database.query('create table shop.free (v int)', [], 'owner');
  pool = new pg.Pool({ connectionString: database.url('app'), max: 1 });
});
afterAll(async () => {
  await pool.end();
  await database[Symbol.asyncDispose]();
});

test.each([
  ['that has written', 'begin; insert into free values (1)', 'read committed'],
  ['of another isolation level', 'begin; insert into free values (2)', 'repeatable read'],
  ['that has failed', 'begin; select 1 / 0', 'read committed'],
  ['that only reads', 'begin read only', 'read committed'],
] as const)('a transaction %s is not taken for the guard’s own, and is rolled back', async (_, left, isolation) => {
  const guard = postgresGuard(pool, { resource: 'left/open' });
  const client = await pool.connect();
  await client.query(left).catch(() => {});
  client.release();
  let worked = false;
  const working = guard.transaction('5', async () => void (worked = true), { isolation });
  expect(await lockError(working)).toMatchObject({
    code: 'Conflict',
    message: expect.stringContaining('a connection inside a transaction that somebody else had begun'),
  });
  expect(worked).toBe(false);
  expect(await guard.transaction('5', async () => 'well')).toBe('well');
  expect(await database.query('select * from shop.free')).toEqual([]);
});
