/** The guard behind pgbouncer, where sessions are shared and only transactions are one's own. */
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Database, openPgBouncer, type PgBouncer, sharedServer } from '../../support/postgres/index.ts';
import { EDGE_VERSIONS } from './edge-versions.ts';
import { enterAnd, markOf, pidOf, refusal } from './support.ts';

const POOL_SIZE = 2;

describe.each(EDGE_VERSIONS)('behind pgbouncer, PostgreSQL %i', (version) => {
  let database: Database;
  let pooled: PgBouncer;
  let open: pg.Client[] = [];
  const connect = async (bouncer: PgBouncer): Promise<pg.Client> => {
    const client = new pg.Client({ connectionString: bouncer.url(database, 'app') });
    client.on('error', () => {});
    await client.connect();
    open.push(client);
    return client;
  };
  const written = async () =>
    (await database.query<{ v: number }>('select v from shop.t order by id')).map((row) => row.v);

  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
    await database.query(
      "create table shop.t (id int generated always as identity, v int); select kilit.protect('shop.t', 'shop/t')",
      undefined,
      'owner',
    );
    pooled = await openPgBouncer(sharedServer(version), { poolMode: 'transaction', poolSize: POOL_SIZE });
  });
  beforeEach(async () => {
    await database.query(
      'alter table shop.t disable trigger user; truncate shop.t; alter table shop.t enable trigger user',
    );
    await database.query("select kilit.reset('shop/t', '1', 'the next test')", [], 'admin');
  });
  afterEach(async () => {
    await Promise.all(open.map((client) => client.end().catch(() => {})));
    open = [];
  });
  afterAll(async () => {
    await pooled[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });

  test('refuses the older of two holders whose transactions take turns on two server connections', async () => {
    const backends = new Set<number>();
    let refused = 0;
    const holder = async (token: string, first: number): Promise<void> => {
      const client = await connect(pooled);
      for (let v = first; v < first + 25; v += 1) {
        try {
          await enterAnd(client, 'shop/t', token, `insert into shop.t (v) values (${v}), (pg_backend_pid())`);
        } catch (error) {
          if ((error as pg.DatabaseError).code !== 'KL001') throw error;
          refused += 1;
        }
        backends.add(await pidOf(client));
      }
    };
    await Promise.all([holder('5', 500), holder('5', 525), holder('6', 600), holder('6', 625)]);
    expect(backends.size).toBeLessThanOrEqual(POOL_SIZE);
    const tokens = (await written()).filter((v) => v >= 500 && v < 700).map((v) => Math.floor(v / 100));
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(tokens.filter((token) => token === 6)).toHaveLength(50);
    expect(tokens.filter((token) => token === 5)).toHaveLength(50 - refused);
    const late = await connect(pooled);
    expect(await refusal(enterAnd(late, 'shop/t', '5'))).toMatchObject({ code: 'KL001' });
  });

  test('does not take the next client on a server connection for one that has entered', async () => {
    const [entering, careless] = [await connect(pooled), await connect(pooled)];
    const shared = new Set<number>();
    for (let round = 0; round < 10; round += 1) {
      await entering.query('begin');
      await entering.query("select kilit.enter('shop/t', '5')");
      const entered = await pidOf(entering);
      await entering.query(round % 2 === 0 ? 'commit' : 'rollback');
      await careless.query('begin');
      if ((await pidOf(careless)) === entered) shared.add(entered);
      const { rows } = await careless.query(
        "select kilit.entered('shop/t') as token, current_setting(kilit.setting_of('shop/t'), true) as setting",
      );
      expect(rows[0].token).toBeNull();
      expect(rows[0].setting ?? '').toBe('');
      expect(await refusal(careless.query('insert into shop.t (v) values (1)'))).toMatchObject({ code: 'KL004' });
      await careless.query('rollback');
    }
    expect(shared.size).toBeGreaterThan(0);
    expect(await written()).toEqual([]);
  });

  test('seal ends the server connection of a frozen client, which gets an error and whose write is gone', async () => {
    const [frozen, next] = [await connect(pooled), await connect(pooled)];
    await frozen.query('begin');
    await frozen.query("select kilit.enter('shop/t', '5')");
    await frozen.query('insert into shop.t (v) values (5)');
    const { rows } = await next.query("select kilit.seal('shop/t', '6', '0.1 seconds') as ended");
    expect(rows).toEqual([{ ended: 1 }]);
    await expect(frozen.query('commit')).rejects.toThrow(/terminat|closed|connection/i);
    await enterAnd(next, 'shop/t', '6', 'insert into shop.t (v) values (6)');
    expect(await written()).toEqual([6]);
  });

  test('seal waits in the queue while frozen clients have the whole pool, so it needs a connection past it', async () => {
    const frozen = [await connect(pooled), await connect(pooled)];
    const next = await connect(pooled);
    await enterAnd(next, 'shop/t', '5');
    for (const client of frozen) {
      await client.query('begin');
      await client.query("select kilit.enter('shop/t', '5')");
    }
    let answered = false;
    const queued = next.query("select kilit.seal('shop/t', '6', '0')").then(() => (answered = true));
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(answered).toBe(false);
    expect(await database.query("select kilit.seal('shop/t', '6', '0') as ended", [], 'app')).toEqual([{ ended: 2 }]);
    await queued;
    expect(await markOf(database, 'shop/t')).toBe('6');
  });

  test('statement pooling makes enter useless and each write refused, unless both are one message', async () => {
    await using single = await openPgBouncer(sharedServer(version), { poolMode: 'statement', poolSize: 1 });
    const client = await connect(single);
    await client.query("select kilit.enter('shop/t', '5')");
    expect(await refusal(client.query('insert into shop.t (v) values (1)'))).toMatchObject({ code: 'KL004' });
    await client.query("select kilit.enter('shop/t', '5'); insert into shop.t (v) values (2)");
    expect(await written()).toEqual([2]);
    expect((await refusal(client.query('begin'))).message).toMatch(/transaction blocks not allowed/);
  });
});
