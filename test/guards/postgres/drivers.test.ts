/** `guard.transaction` and `guard.seal` with both drivers: what they do and what they answer. */
import { drizzle } from 'drizzle-orm/node-postgres';
import { type PostgresGuard, postgresGuard, postgresJsGuard } from 'kilit/guards/postgres';
import pg from 'pg';
import postgres from 'postgres';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, sharedServer } from '../../support/postgres/index.ts';
import { enterAnd, lockError, markOf, someoneWaits } from './support.ts';

/** Both drivers behind one face: `run` is a statement in the driver's own transaction. */
interface Side<Tx = unknown> {
  guard(resource: string): PostgresGuard<Tx>;
  run(tx: Tx, statement: string): Promise<unknown>;
  end(): Promise<void>;
}

function withPg(url: string): Side<pg.PoolClient> {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  pool.on('error', () => {});
  return {
    guard: (resource) => postgresGuard(pool, { resource }),
    run: (client, statement) => client.query(statement),
    end: () => pool.end(),
  };
}

function withPostgresJs(url: string): Side<postgres.TransactionSql> {
  const sql = postgres(url, { max: 4, onnotice: () => {} });
  return {
    guard: (resource) => postgresJsGuard(sql, { resource }),
    run: async (tx, statement) => tx.unsafe(statement),
    end: () => sql.end({ timeout: 1 }),
  };
}

/** Resolves when so many backends of the database wait for a lock. */
async function waiters(database: Database, count: number): Promise<void> {
  const waiting = "select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  await expect.poll(async () => (await database.query(waiting)).length, { timeout: 10_000, interval: 10 }).toBe(count);
}

describe.each([
  ['pg', withPg],
  ['postgres', withPostgresJs],
] as const)('the driver %s', (name, open) => {
  let database: Database;
  let side: Side;
  const written = async () =>
    (await database.query<{ v: number }>('select v from shop.t order by v')).map((row) => row.v);
  const resource = `shop/${name}`;

  beforeAll(async () => {
    database = await sharedServer().createDatabase();
    await database.query(
      `create table shop.t (v int); select kilit.protect('shop.t', '${resource}')`,
      undefined,
      'owner',
    );
    side = open(database.url('app')) as Side;
  });
  afterAll(async () => {
    await side.end();
    await database[Symbol.asyncDispose]();
  });

  test('commits what the work wrote, and gives its result back', async () => {
    const result = await side.guard(resource).transaction('10', async (tx) => {
      await side.run(tx, 'insert into t values (1)');
      return ['a', Promise.resolve('b')] as const;
    });
    expect(await result[1]).toBe('b');
    await side
      .guard(resource)
      .transaction(10n, (tx) => side.run(tx, 'insert into t values (2)'), { isolation: 'serializable' });
    expect(await written()).toEqual([1, 2]);
  });

  test('rolls back and rethrows the error of the work as it is', async () => {
    const failure = new Error('the payment service is away');
    const working = side.guard(resource).transaction('10', async (tx) => {
      await side.run(tx, 'insert into t values (3)');
      throw failure;
    });
    await expect(working).rejects.toBe(failure);
    expect(await written()).toEqual([1, 2]);
  });

  test('does not call a transaction committed whose failed statement the work swallowed', async () => {
    const working = side.guard(resource).transaction('10', async (tx) => {
      await side.run(tx, 'insert into t values (4)');
      await Promise.resolve(side.run(tx, 'select 1 / 0')).catch(() => {});
    });
    await expect(working).rejects.toThrow(/Nothing was committed|division by zero/);
    expect(await written()).toEqual([1, 2]);
  });

  test.each(['rollback', 'commit'])('does not say committed when the work itself says %s', async (end) => {
    const before = await written();
    const working = side.guard(resource).transaction('10', async (tx) => {
      await side.run(tx, 'insert into t values (5)');
      await side.run(tx, end);
    });
    expect(await lockError(working)).toMatchObject({
      code: 'Conflict',
      message: expect.stringContaining('The work ended the transaction itself'),
    });
    await database.query('delete from shop.t where v = 5').catch(() => {});
    await side.guard(resource).transaction('10', (tx) => side.run(tx, 'delete from t where v = 5'));
    expect(await written()).toEqual(before);
  });

  test('says what the work must be', async () => {
    const working = side.guard(resource).transaction('10', undefined as never);
    expect(await lockError(working)).toMatchObject({
      code: 'InvalidConfig',
      message: expect.stringContaining('must be the work'),
    });
  });

  test('refuses an old token, before the work, with both tokens; the refusal is counted and noted', async () => {
    await side.guard('shop/stale').seal('4720');
    let worked = false;
    const refused = await lockError(
      side.guard('shop/stale').transaction('4711', async () => {
        worked = true;
      }),
    );
    expect(worked).toBe(false);
    expect(refused).toMatchObject({
      code: 'StaleToken',
      retryable: false,
      details: { resource: 'shop/stale', token: '4711', mark: '4720' },
      message:
        "[StaleToken] Write refused: token 4711 is older than 4720, the newest seen for 'shop/stale'. This process is no longer the holder; let it exit.",
    });
    expect(await lockError(side.guard('shop/stale').seal(1n))).toMatchObject({ code: 'StaleToken' });
    expect(await database.query("select refused from kilit.marks where resource = 'shop/stale'")).toEqual([
      { refused: '2' },
    ]);
    expect(
      await database.query(
        "select kind, token, mark, role from kilit.refusals where resource = 'shop/stale' order by at",
      ),
    ).toEqual([
      { kind: 'stale', token: '4711', mark: '4720', role: 'app' },
      { kind: 'stale', token: '1', mark: '4720', role: 'app' },
    ]);
  });

  test.each(['on', 'off'])('takes any name of a resource as it is, standard_conforming_strings %s', async (setting) => {
    const odd = `shop/o'neill\\'; select 1; --"$1 ${setting} é🦕`;
    const options = `-c standard_conforming_strings=${setting}`;
    const other = open(`${database.url('app')}?options=${encodeURIComponent(options)}`);
    try {
      expect(await other.guard(odd).transaction('12', async () => 'entered')).toBe('entered');
    } finally {
      await other.end();
    }
    expect(await markOf(database, odd)).toBe('12');
  });

  test('says that a write went to a table of another resource', async () => {
    const working = side.guard('shop/elsewhere').transaction('10', (tx) => side.run(tx, 'insert into t values (5)'));
    expect(await lockError(working)).toMatchObject({
      code: 'NotEntered',
      message: expect.stringContaining(`has not entered '${resource}'`),
    });
  });

  test('enters again when the mark was raised after its snapshot, without running the work twice', async () => {
    const held = await database.connect('app');
    await enterAnd(held, 'shop/again', '5');
    await held.query("begin; select kilit.enter('shop/again', '6')");
    let runs = 0;
    const working = side.guard('shop/again').transaction(
      '7',
      async (tx) => {
        runs += 1;
        await side.run(tx, 'select 1');
      },
      { isolation: 'repeatable read' },
    );
    await someoneWaits(database);
    await held.query('commit');
    await working;
    expect(runs).toBe(1);
    expect(await markOf(database, 'shop/again')).toBe('7');
    await held.end();
  });

  test('gives up entering when the mark was raised after its second snapshot too, with what to do', async () => {
    const [first, second] = [await database.connect('app'), await database.connect('app')];
    await enterAnd(first, 'shop/twice', '5');
    await first.query("begin; select kilit.enter('shop/twice', '6')");
    let worked = false;
    const work = async (): Promise<void> => {
      worked = true;
    };
    const refused = lockError(side.guard('shop/twice').transaction('9', work, { isolation: 'serializable' }));
    await someoneWaits(database);
    // Waits behind the guard's first attempt, and so comes before its second.
    const raising = second.query("begin; select kilit.enter('shop/twice', '7')");
    await waiters(database, 2);
    await first.query('commit');
    await raising;
    await someoneWaits(database);
    await second.query('commit');
    expect(await refused).toMatchObject({
      code: 'Conflict',
      retryable: true,
      message: expect.stringMatching(/^\[Conflict\] The mark of 'shop\/twice' changed twice .*; try again\.$/),
    });
    expect(worked).toBe(false);
    expect(await markOf(database, 'shop/twice')).toBe('7');
    await Promise.all([first.end(), second.end()]);
  });

  test('does not run the work again after a serialization failure inside it', async () => {
    let runs = 0;
    const working = side.guard(resource).transaction('10', async (tx) => {
      runs += 1;
      await side.run(tx, 'do $$ begin raise serialization_failure; end $$');
    });
    await expect(working).rejects.toMatchObject({ code: '40001' });
    expect(runs).toBe(1);
  });

  test('survives that its session is ended during a statement, and writes again on a new one', async () => {
    const working = side.guard(resource).transaction('10', async (tx) => {
      await side.run(tx, 'insert into t values (6)');
      await side.run(tx, 'select pg_terminate_backend(pg_backend_pid())');
    });
    await expect(working).rejects.toMatchObject({ code: { pg: '57P01', postgres: 'CONNECTION_CLOSED' }[name] });
    expect(await written()).toEqual([1, 2]);
    await side.guard(resource).transaction('10', (tx) => side.run(tx, 'insert into t values (7)'));
    expect(await written()).toEqual([1, 2, 7]);
  });

  test('survives that its session is ended between statements', async () => {
    const ended = Promise.withResolvers<undefined>();
    const pid = Promise.withResolvers<number>();
    const working = side.guard(resource).transaction('10', async (tx) => {
      const result = await side.run(tx, 'select pg_backend_pid() as pid');
      pid.resolve(Number((Array.isArray(result) ? result : (result as pg.QueryResult).rows)[0].pid));
      await ended.promise;
      await side.run(tx, 'insert into t values (8)');
    });
    const refused = working.then(String, String);
    await database.query('select pg_terminate_backend($1, 5000)', [await pid.promise]);
    ended.resolve(undefined);
    expect(await refused).toMatch(/terminat|closed|connection error/i);
    await side.guard(resource).transaction('10', (tx) => side.run(tx, 'select 1'));
    expect(await written()).not.toContain(8);
  });

  test('seals, and ends a holder that froze in its transaction', async () => {
    const frozen = await database.connect('app');
    await enterAnd(frozen, 'shop/frozen', '5');
    await frozen.query("begin; select kilit.enter('shop/frozen', '5')");
    expect(await side.guard('shop/frozen').seal('6', { waitMs: 0 })).toEqual({ endedSessions: 1 });
    expect(await side.guard('shop/frozen').seal('6')).toEqual({ endedSessions: 0 });
    await frozen.end().catch(() => {});
  });

  test('says what blocks a seal that it cannot end', async () => {
    const client = await database.connect('app');
    await client.query("begin; select kilit.enter('shop/prepared', '5'); prepare transaction 'left behind'");
    const blocked = await lockError(side.guard('shop/prepared').seal('6', { waitMs: 0 }));
    await client.query("rollback prepared 'left behind'");
    expect(blocked).toMatchObject({
      code: 'Blocked',
      retryable: true,
      message: expect.stringContaining("blocked by prepared transaction 'left behind'"),
    });
    expect(await side.guard('shop/prepared').seal('6', { waitMs: 0 })).toEqual({ endedSessions: 0 });
    await client.end();
  });

  test.each([
    5 as unknown as string,
    '',
    '0',
    '007',
    '+5',
    ' 5',
    '1e3',
    '-1',
    -1n,
    10n ** 18n,
    undefined as unknown as string,
  ])('refuses the token %o without asking the server', async (token) => {
    for (const call of [side.guard(resource).seal(token), side.guard(resource).transaction(token, async () => {})]) {
      expect(await lockError(call)).toMatchObject({
        code: 'InvalidConfig',
        message: expect.stringMatching(/^\[InvalidConfig\] (Invalid f|F)encing token /),
      });
    }
  });

  test('refuses wrong settings with what is right', async () => {
    expect(() => side.guard('')).toThrow('[InvalidConfig] Invalid resource "": it must have 1 to 317 characters');
    expect(await lockError(side.guard(resource).seal('10', { waitMs: 60_001 }))).toMatchObject({
      message: '[InvalidConfig] waitMs must be a whole number from 0 to 60000, got 60001.',
    });
    const isolation = 'read; drop table t' as 'serializable';
    expect(await lockError(side.guard(resource).transaction('10', async () => {}, { isolation }))).toMatchObject({
      code: 'InvalidConfig',
    });
    expect(await lockError(side.guard('shop/jump').seal('9007199254740993'))).toMatchObject({
      code: 'InvalidConfig',
      message: expect.stringContaining('jumps more than 10^15 above the newest seen, 0'),
    });
  });

  test('says when the guard is not installed, or not granted', async () => {
    const bare = await sharedServer().createDatabase({ guard: false });
    const there = open(bare.url('app')) as Side;
    expect(await lockError(there.guard(resource).seal('5'))).toMatchObject({
      code: 'InvalidConfig',
      message: expect.stringContaining('The guard is not installed in this database'),
    });
    await there.end();
    await bare[Symbol.asyncDispose]();
    await database.query('create role nobody_in_particular login').catch(() => {});
    const stranger = open(database.url('nobody_in_particular')) as Side;
    expect(await lockError(stranger.guard(resource).transaction('5', async () => {}))).toMatchObject({
      code: 'Forbidden',
      message: expect.stringContaining('grant kilit_writer to'),
    });
    await stranger.end();
  });
});

// The driver alone sends ROLLBACK into the closed socket: an uncaught TypeError (porsager/postgres#1133).
test('pg: a name that would end the text in another client_encoding enters that very resource', async () => {
  const database = await sharedServer().createDatabase();
  const pool = new pg.Pool({ connectionString: database.url('app'), max: 1 });
  try {
    // The last byte of ﾁ in UTF-8 is the first of two in Shift JIS, which takes the next one with it.
    const odd = "shop/ﾁ'; select 1; --";
    await pool.query('set client_encoding to SJIS');
    expect(await postgresGuard(pool, { resource: odd }).transaction('12', async () => 'entered')).toBe('entered');
    expect(await markOf(database, odd)).toBe('12');
  } finally {
    await pool.end();
    await database[Symbol.asyncDispose]();
  }
});

test('postgres: the statement that ends its own session ends neither the process nor the pool', async () => {
  await using database = await sharedServer().createDatabase();
  const sql = postgres(database.url('app'), { max: 1, onnotice: () => {} });
  const guard = postgresJsGuard(sql, { resource: 'shop/alone' });
  const ended = guard.transaction('10', (tx) => tx.unsafe('select pg_terminate_backend(pg_backend_pid())'));
  await expect(ended).rejects.toMatchObject({ code: 'CONNECTION_CLOSED' });
  // The driver hands the former session's last words to whoever connects next.
  await expect(guard.transaction('10', (tx) => tx`select 1 as one`)).rejects.toMatchObject({ code: '57P01' });
  expect(await guard.transaction('10', (tx) => tx`select 1 as one`)).toMatchObject([{ one: 1 }]);
  await sql.end();
});

// The driver gives the object of a lost connection to the next transaction (porsager/postgres#1216).
test.each([['in the transaction itself'], ['in a savepoint']])(
  'postgres: what a lost transaction goes on to do %s stays out of the next one on its connection',
  async (where) => {
    await using database = await sharedServer().createDatabase();
    await database.query("create table shop.t (v text); select kilit.protect('shop.t', 'shop/reuse')", [], 'owner');
    const sql = postgres(database.url('app'), { max: 1, onnotice: () => {} });
    const guard = postgresJsGuard(sql, { resource: 'shop/reuse' });
    const [pid, next] = [Promise.withResolvers<number>(), Promise.withResolvers<undefined>()];
    const stale = Promise.withResolvers<unknown>();
    const work = async (tx: postgres.TransactionSql): Promise<void> => {
      pid.resolve((await tx`select pg_backend_pid() as pid`)[0]?.pid as number);
      await next.promise;
      try {
        stale.resolve(await tx`insert into t values ('from the lost one')`);
      } catch (error) {
        stale.resolve(error);
        throw error;
      }
    };
    const lost = guard.transaction('10', where === 'in a savepoint' ? (tx) => tx.savepoint(work) : work);
    const refused = lost.then(String, String);
    await database.query('select pg_terminate_backend($1, 5000)', [await pid.promise]);
    expect(await refused).toContain('CONNECTION_CLOSED');

    const undone = guard.transaction('11', async (tx) => {
      await tx`insert into t values ('to be rolled back')`;
      next.resolve(undefined);
      await expect(stale.promise).resolves.toBeInstanceOf(Error);
      // Time for a COMMIT or ROLLBACK of the lost one, if it sent any.
      await tx`insert into t values ('to be rolled back as well')`;
      throw new Error('undone');
    });
    await expect(undone).rejects.toThrow('undone');
    expect(await database.query('select v from shop.t')).toEqual([]);
    await sql.end();
  },
);

test('the refusal of a write through Drizzle, which wraps errors, is told as such', async () => {
  await using database = await sharedServer().createDatabase();
  await database.query("create table shop.t (v int); select kilit.protect('shop.t', 'shop/other')", [], 'owner');
  const pool = new pg.Pool({ connectionString: database.url('app'), max: 1 });
  const working = postgresGuard(pool, { resource: 'shop/mine' }).transaction('10', (client) =>
    drizzle({ client }).execute('insert into t values (1)'),
  );
  expect(await lockError(working)).toMatchObject({ code: 'NotEntered' });
  await pool.end();
});

test('a number is no token for the types either', () => {
  const guard = {} as PostgresGuard<unknown>;
  // @ts-expect-error a number is not exact above 2^53
  const call = () => guard.seal(5);
  expect(call).toThrow(TypeError);
});
