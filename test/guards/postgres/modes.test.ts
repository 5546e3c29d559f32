/** What a transaction with an old snapshot may do after the mode was changed. */
import type { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Database, sharedServer } from '../../support/postgres/index.ts';
import { EDGE_VERSIONS } from './edge-versions.ts';
import { enterAnd, refusal } from './support.ts';

describe.each(EDGE_VERSIONS)('modes on PostgreSQL %i', (version) => {
  let database: Database;
  let round = 0;
  let resource = '';
  const open: Client[] = [];
  const connect = async () => {
    const client = await database.connect('app');
    open.push(client);
    return client;
  };
  const setMode = (mode: string) =>
    database.query('select kilit.set_mode($1, $2, $3)', [resource, mode, 'a test'], 'admin');
  /** A transaction whose snapshot is of the time of `observe`. */
  const oldSnapshot = async () => {
    const client = await connect();
    await client.query('begin isolation level repeatable read');
    await client.query('select 1');
    return client;
  };

  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
  });
  beforeEach(async () => {
    round += 1;
    resource = `modes/${round}`;
    await database.query(
      `create table shop.t${round} (v int); select kilit.protect('shop.t${round}', '${resource}')`,
      [],
      'owner',
    );
    await setMode('observe');
    await enterAnd(await connect(), resource, '5');
  });
  afterEach(() => Promise.all(open.splice(0).map((client) => client.end().catch(() => {}))));
  afterAll(() => database[Symbol.asyncDispose]());

  test('a transaction from before enforce cannot enter with an old token after it', async () => {
    const old = await oldSnapshot();
    await setMode('enforce');
    await enterAnd(await connect(), resource, '6');
    expect(await refusal(old.query('select kilit.enter($1::text, $2::text)', [resource, '5']))).toMatchObject({
      code: '40001',
    });
  });

  test('nor write without having entered', async () => {
    const old = await oldSnapshot();
    await setMode('enforce');
    expect(await refusal(old.query(`insert into t${round} values (5)`))).toMatchObject({ code: '40001' });
  });

  test('in observe mode an old snapshot does not stop the noting of what passes', async () => {
    await database.query(
      "insert into kilit.refusal (resource, kind, mark) select 'x', 'stale', 1 from generate_series(1, 10200)",
    );
    const old = await oldSnapshot();
    await enterAnd(await connect(), resource, '4');
    await old.query('select kilit.enter($1::text, $2::text)', [resource, '4']);
    await old.query('commit');
  });
});
