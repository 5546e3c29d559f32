/** What users of other lock systems ran into, with the guard in the way. Each name begins with the report; docs/scenarios.md. */
import { type PostgresGuard, postgresGuard } from 'kilit/guards/postgres';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, sharedServer } from '../../support/postgres/index.ts';
import { enterAnd, lockError, markOf, refusal } from './support.ts';
import { randomFrom } from './torture/random.ts';

let database: Database;
const open: pg.Pool[] = [];

/** The guard as one process has it, with a pool of its own. */
function processOf(resource: string, name: string): PostgresGuard<pg.PoolClient> {
  const pool = new pg.Pool({ connectionString: database.url('app'), max: 2, application_name: name });
  pool.on('error', () => {});
  open.push(pool);
  return postgresGuard(pool, { resource });
}

interface Appended {
  /** What the clients were told is in the set, in the order of their writes. */
  readonly confirmed: readonly number[];
  readonly members: readonly number[];
  readonly refused: number;
  readonly expired: number;
}

/**
 * Five clients of a lock service whose leases end while they pause, one step at a time: acquire and read the set, then,
 * some steps later, write what was read and one number more. No client is told that its lease has ended.
 */
async function appendUnderLock(id: 'guarded' | 'unguarded'): Promise<Appended> {
  const random = randomFrom(11457);
  const client = await database.connect('app');
  const members = async () =>
    (await client.query<{ members: number[] }>('select members from numbers where id = $1', [id])).rows[0]?.members ??
    [];
  const clients = Array.from({ length: 5 }, () => ({
    held: undefined as { token: string; read: number[] } | undefined,
  }));
  const confirmed: number[] = [];
  const count = { refused: 0, expired: 0 };
  let holder: object | undefined;
  let token = 100;
  for (let step = 1; step <= 500; step += 1) {
    if (holder !== undefined && random() < 0.2) {
      holder = undefined;
      count.expired += 1;
    }
    const next = clients[Math.floor(random() * clients.length)];
    if (next === undefined) throw new Error('There are five clients.');
    if (next.held !== undefined) {
      const update = `update numbers set members = '{${[...next.held.read, step].join(',')}}' where id = '${id}'`;
      try {
        if (id === 'unguarded') await client.query(update);
        else await enterAnd(client, 'shop/numbers', next.held.token, update);
        confirmed.push(step);
      } catch (error) {
        if ((error as pg.DatabaseError).code !== 'KL001') throw error;
        count.refused += 1;
      }
      next.held = undefined;
      if (holder === next) holder = undefined;
    } else if (holder === undefined) {
      holder = next;
      token += 1;
      if (id === 'guarded') await client.query("select kilit.seal('shop/numbers', $1::text)", [String(token)]);
      next.held = { token: String(token), read: await members() };
    }
  }
  const appended = { confirmed, members: await members(), ...count };
  await client.end();
  return appended;
}

beforeAll(async () => {
  database = await sharedServer().createDatabase();
  await database.query(
    `create table shop.storage (v text, token bigint default kilit.entered('shop/storage'));
     select kilit.protect('shop.storage', 'shop/storage');
     create table shop.numbers (id text primary key, members int[] not null);
     insert into shop.numbers values ('guarded', '{}'), ('unguarded', '{}')`,
    undefined,
    'owner',
  );
});
afterAll(async () => {
  await Promise.all(open.map((pool) => pool.end()));
  await database[Symbol.asyncDispose]();
});

describe('two holders at once', () => {
  const write = (guard: PostgresGuard<pg.PoolClient>, token: string, v: string) =>
    guard.transaction(token, async (client) => {
      await client.query('insert into storage (v) values ($1)', [v]);
    });

  test('etcd-io/etcd#10811: a client whose lease ended while it was cut off goes on writing, and is refused', async () => {
    const [a, b] = [processOf('shop/storage', 'client-a'), processOf('shop/storage', 'client-b')];
    await a.seal('4711');
    await write(a, '4711', 'A holds the lock');
    // Cut off from the lock service: the lease ends, the key is deleted, B is granted the lock. A is told nothing.
    await b.seal('4720');
    expect(await lockError(write(a, '4711', 'A still believes that it holds the lock'))).toMatchObject({
      code: 'StaleToken',
      retryable: false,
      details: { resource: 'shop/storage', token: '4711', mark: '4720' },
    });
    await write(b, '4720', 'B holds the lock');
    expect((await lockError(write(a, '4711', 'A tries again'))).code).toBe('StaleToken');
    await write(b, '4720', 'B again');
    expect(await database.query('select v, token from shop.storage')).toEqual([
      { v: 'A holds the lock', token: '4711' },
      { v: 'B holds the lock', token: '4720' },
      { v: 'B again', token: '4720' },
    ]);
    const noted = "select token, mark, application from kilit.refusals where resource = 'shop/storage'";
    expect(await database.query(noted)).toEqual([
      { token: '4711', mark: '4720', application: 'client-a' },
      { token: '4711', mark: '4720', application: 'client-a' },
    ]);
  });

  describe('etcd-io/etcd#11457: read a set under the lock, pause, write it with one number more', () => {
    test('with the guard no number whose write was confirmed is lost', async () => {
      const { confirmed, refused, expired, members } = await appendUnderLock('guarded');
      expect(members).toEqual(confirmed);
      expect(confirmed.length).toBeGreaterThan(50);
      expect(expired).toBeGreaterThan(10);
      expect(refused).toBeGreaterThan(10);
    });

    test('without the guard the same work loses some: the check can fail', async () => {
      const { confirmed, members } = await appendUnderLock('unguarded');
      expect(confirmed.filter((value) => !members.includes(value)).length).toBeGreaterThan(0);
    });
  });
});

describe('tokens', () => {
  const enter = (resource: string, token: string, type: 'text' | 'bigint') =>
    database.query(`select kilit.enter($1::text, $2::${type}) as token`, [resource, token], 'app');

  test.each(['text', 'bigint'] as const)(
    'redis/redis#1118, #3224: 2^53 + 1 is not 2^53, and 2^63 - 1 is no token (%s)',
    async (type) => {
      const resource = `exact/${type}`;
      const [lower, upper] = [(2n ** 53n).toString(), (2n ** 53n + 1n).toString()];
      expect(Number(lower)).toBe(Number(upper));
      await database.query('select kilit.reset($1, $2::text, $3)', [resource, lower, 'to start there'], 'admin');
      expect(await enter(resource, upper, type)).toEqual([{ token: upper }]);
      expect(await markOf(database, resource)).toBe(upper);
      expect(await refusal(enter(resource, lower, type))).toMatchObject({
        code: 'KL001',
        message: `stale fencing token ${lower} for '${resource}': the newest seen is ${upper}`,
      });
      expect(await refusal(enter(resource, (2n ** 63n - 1n).toString(), type))).toMatchObject({
        code: 'KL002',
        message: `invalid fencing token '9223372036854775807' for '${resource}': it must be a decimal integer from 1 to 999999999999999999`,
      });
      expect(await markOf(database, resource)).toBe(upper);
    },
  );

  test("an equal token passes: a holder's second write, and one on another connection", async () => {
    const [first, second] = [await database.connect('app'), await database.connect('app')];
    for (const [client, v] of [
      [first, 'one'],
      [first, 'two'],
      [second, 'three'],
    ] as const) {
      await enterAnd(client, 'shop/storage', '5000', `insert into shop.storage (v) values ('${v}')`);
    }
    await Promise.all([first.end(), second.end()]);
    expect(await database.query('select v from shop.storage where token = 5000')).toEqual([
      { v: 'one' },
      { v: 'two' },
      { v: 'three' },
    ]);
  });

  describe('kubernetes/kubernetes#107457, #118501: etcd was restored, and tokens are below the mark', () => {
    test('the holder is refused with both numbers, and the view says since when the mark stands', async () => {
      await enter('restore/seen', '1200', 'text');
      const holder = processOf('restore/seen', 'after-the-restore');
      expect(await lockError(holder.seal('1001'))).toMatchObject({
        code: 'StaleToken',
        details: { resource: 'restore/seen', token: '1001', mark: '1200' },
      });
      const [row] = await database.query(
        "select token, raised_by, raised_at < now() as before from kilit.marks where resource = 'restore/seen'",
      );
      expect(row).toEqual({ token: '1200', raised_by: 'app', before: true });
    });

    test("a raised token base repairs it: the next token is above the mark, and the restored cluster's are refused", async () => {
      await enter('restore/base', '1200', 'text');
      const base = 1_000_000n;
      expect(await enter('restore/base', (1001n + base).toString(), 'text')).toEqual([{ token: '1001001' }]);
      expect(await refusal(enter('restore/base', '1002', 'text'))).toMatchObject({ code: 'KL001' });
    });

    test('kilit.reset repairs one mark, and keeps who did it and why', async () => {
      await enter('restore/reset', '1200', 'text');
      const reset = "select kilit.reset('restore/reset', '1001', 'etcd was restored; the Pods from before are gone')";
      await database.query(reset, [], 'admin');
      expect(await enter('restore/reset', '1001', 'text')).toEqual([{ token: '1001' }]);
      expect(await enter('restore/reset', '1002', 'text')).toEqual([{ token: '1002' }]);
      expect(
        await database.query(
          "select old_value, new_value, reason, role from kilit.changes where resource = 'restore/reset'",
        ),
      ).toEqual([
        {
          old_value: '1200',
          new_value: '1001',
          reason: 'etcd was restored; the Pods from before are gone',
          role: 'admin',
        },
      ]);
    });
  });
});
