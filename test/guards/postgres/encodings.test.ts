/** Names of resources, and the guard itself, in databases of other encodings than UTF-8. */
import { postgresGuard, postgresJsGuard } from 'kilit/guards/postgres';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { guardSql } from '../../support/postgres/guard.ts';
import { type Database, sharedServer } from '../../support/postgres/index.ts';
import { lockError } from './support.ts';

test('the SQL of the guard has ASCII letters only, so that every encoding can take it', () => {
  expect(guardSql().match(/[^\n\r\t -~]/gu)).toBeNull();
});

test('half of a surrogate pair is no name: two of them would become one', () => {
  expect(() => postgresGuard({} as pg.Pool, { resource: 'x\ud800' })).toThrow('half of a surrogate pair');
});

describe.each([
  ['LATIN1', 'shop/ü'],
  ['SQL_ASCII', 'shop/請求'],
  ['EUC_JP', 'shop/請求'],
])('a database with encoding %s', (encoding, resource) => {
  let database: Database;
  const name = `enc_${encoding.toLowerCase()}`;
  const url = () => Object.assign(new URL(database.url()), { pathname: `/${name}` }).href;

  beforeAll(async () => {
    database = await sharedServer().createDatabase();
    await database.query(
      `create database ${name} encoding '${encoding}' template template0 lc_collate 'C' lc_ctype 'C'`,
    );
    const client = new pg.Client({ connectionString: url() });
    await client.connect();
    await client.query(guardSql());
    await client.end();
  });
  afterAll(async () => {
    await database.query(`drop database ${name} with (force)`);
    await database[Symbol.asyncDispose]();
  });

  test(`takes the name ${resource} with both drivers as the same`, async () => {
    const pool = new pg.Pool({ connectionString: url(), max: 1 });
    const sql = postgres(url(), { max: 1, onnotice: () => {} });
    await postgresGuard(pool, { resource }).seal('6');
    await postgresGuard(pool, { resource }).transaction('6', async () => undefined);
    await postgresJsGuard(sql, { resource }).transaction('6', async () => undefined);
    expect(await lockError(postgresJsGuard(sql, { resource }).transaction('5', async () => undefined))).toMatchObject({
      code: 'StaleToken',
    });
    expect(await lockError(postgresGuard(pool, { resource }).transaction('5', async () => undefined))).toMatchObject({
      code: 'StaleToken',
    });
    await pool.end();
    await sql.end();
  });
});
