/** kilit.seal: a new holder shuts out the old ones, whatever they are stuck in. */
import type { Client } from 'pg';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Database, SERVER_VERSIONS, sharedServer } from '../../support/postgres/index.ts';
import { enterAnd, markOf, pidOf, refusal, someoneWaits } from './support.ts';

/** The promise is `wait` and one second; the rest is what a busy machine adds to the test. */
const SLACK_MS = 4000;

describe.each(SERVER_VERSIONS)('seal on PostgreSQL %i', (version) => {
  let database: Database;
  let round = 0;
  let resource = '';
  const open: Client[] = [];
  const connect = async (role = 'app') => {
    const client = await database.connect(role);
    open.push(client);
    return client;
  };
  const seal = async (token: string, wait = '0.2 seconds') => {
    const startedAt = performance.now();
    const [row] = await database.query<{ ended: number }>(
      'select kilit.seal($1::text, $2::text, $3::interval) as ended',
      [resource, token, wait],
      'app2',
    );
    return { ended: row?.ended, ms: performance.now() - startedAt };
  };
  const written = async () =>
    (await database.query<{ v: number }>('select v from shop.t order by v')).map((row) => row.v);

  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
    await database.query('create table shop.t (v int)', [], 'owner');
  });
  beforeEach(async () => {
    round += 1;
    resource = `seal/${round}`;
    await database.query('truncate t', [], 'owner');
    await Promise.all(open.splice(0).map((client) => client.end().catch(() => {})));
  });
  afterAll(() => database[Symbol.asyncDispose]());

  test('refuses older tokens before the new holder has written anything', async () => {
    await enterAnd(await connect(), resource, '5', 'insert into t values (1)');
    expect(await seal('6')).toMatchObject({ ended: 0 });
    expect(await refusal(enterAnd(await connect(), resource, '5', 'insert into t values (2)'))).toMatchObject({
      code: 'KL001',
    });
    expect(await refusal(seal('5'))).toMatchObject({ code: 'KL001' });
    expect(await seal('6')).toMatchObject({ ended: 0 });
    expect(await written()).toEqual([1]);
    const [row] = await database.query(
      'select token, sealed_at is not null as sealed, raised_by from kilit.marks where resource = $1',
      [resource],
    );
    expect(row).toEqual({ token: '6', sealed: true, raised_by: 'app2' });
  });

  test('waits for the open transactions of the old holder, which may commit meanwhile', async () => {
    const old = await connect();
    await enterAnd(old, resource, '5');
    await old.query('begin');
    await old.query('select kilit.enter($1::text, $2::text)', [resource, '5']);
    const sealing = seal('6', '30 seconds');
    await someoneWaits(database);
    await old.query('insert into t values (1)');
    await old.query('commit');
    expect(await sealing).toMatchObject({ ended: 0 });
    expect(await written()).toEqual([1]);
  });

  test('ends the session of a holder that froze in an open transaction, and what it had not committed is gone', async () => {
    const frozen = await connect();
    await enterAnd(frozen, resource, '5');
    await frozen.query('begin');
    await frozen.query('select kilit.enter($1::text, $2::text)', [resource, '5']);
    await frozen.query('insert into t values (1)');
    const { ended, ms } = await seal('6');
    expect(ended).toBe(1);
    expect(ms).toBeLessThan(200 + 1000 + SLACK_MS);
    await expect(frozen.query('commit')).rejects.toThrow(/terminat|connection/);
    expect(await written()).toEqual([]);
  });

  test('ends a holder that froze in the transaction that raised the mark', async () => {
    const frozen = await connect();
    await enterAnd(frozen, resource, '4');
    await frozen.query('begin');
    await frozen.query('select kilit.enter($1::text, $2::text)', [resource, '5']);
    expect(await seal('6')).toMatchObject({ ended: 1 });
    expect(await markOf(database, resource)).toBe('6');
  });

  test('does not end a newer holder that is raising the mark, but is refused itself', async () => {
    const newer = await connect();
    await enterAnd(newer, resource, '4');
    await newer.query('begin');
    await newer.query('select kilit.enter($1::text, $2::text)', [resource, '7']);
    expect(await refusal(seal('6'))).toMatchObject({
      code: 'KL001',
      message: `stale fencing token 6 for '${resource}': the newest seen is 7`,
    });
    await newer.query('insert into t values (7)');
    await newer.query('commit');
    expect(await written()).toEqual([7]);
  });

  test('ends every session of a holder that froze with eight connections', async () => {
    const sessions = await Promise.all(Array.from({ length: 8 }, () => connect()));
    await enterAnd(sessions[0] as Client, resource, '5');
    for (const session of sessions) {
      await session.query('begin');
      await session.query('select kilit.enter($1::text, $2::text)', [resource, '5']);
    }
    expect(await seal('6')).toMatchObject({ ended: 8 });
  });

  test('ends at once with a wait of 0, and leaves sessions alone that are not in the way', async () => {
    const idle = await connect();
    const other = await connect();
    await enterAnd(idle, resource, '5');
    await other.query('begin');
    await other.query("select kilit.enter('seal/other', '1')");
    const frozen = await connect();
    await frozen.query('begin');
    await frozen.query('select kilit.enter($1::text, $2::text)', [resource, '5']);
    expect(await seal('6', '0')).toMatchObject({ ended: 1 });
    await idle.query('select 1');
    await other.query('commit');
  });

  test('names a prepared transaction that blocks it, changes nothing, and seals when it is gone', async () => {
    const old = await connect();
    await enterAnd(old, resource, '5');
    await old.query('begin');
    await old.query('select kilit.enter($1::text, $2::text)', [resource, '5']);
    await old.query(`prepare transaction 'two-phase ${version} ${round}'`);
    const startedAt = performance.now();
    expect(await refusal(seal('6'))).toMatchObject({
      code: 'KL005',
      message: `the mark of '${resource}' cannot be set to 6: blocked by prepared transaction 'two-phase ${version} ${round}'`,
      hint: expect.stringContaining('ROLLBACK PREPARED'),
    });
    expect(performance.now() - startedAt).toBeLessThan(200 + 1000 + SLACK_MS);
    expect(await markOf(database, resource)).toBe('5');
    await old.query(`rollback prepared 'two-phase ${version} ${round}'`);
    expect(await seal('6')).toMatchObject({ ended: 0 });
  });

  test('names the session that adds the mark of a resource which nobody had used', async () => {
    const first = await connect();
    await first.query('begin');
    await first.query('select kilit.enter($1::text, $2::text)', [resource, '5']);
    expect(await refusal(seal('6'))).toMatchObject({
      code: 'KL005',
      message: expect.stringContaining(`blocked by session ${await pidOf(first)} of role app`),
    });
    await first.query('commit');
    expect(await seal('6')).toMatchObject({ ended: 0 });
  });

  test.each([['-1 second'], ['61 seconds'], [null]])('refuses to wait for %s', async (wait) => {
    expect(
      await refusal(
        database.query('select kilit.seal($1::text, $2::text, $3::interval)', [resource, '6', wait], 'app'),
      ),
    ).toMatchObject({
      code: 'KL002',
      message: expect.stringMatching(/^invalid wait .*: it must be from 0 to 1 minute$/),
    });
    expect(await markOf(database, resource)).toBeUndefined();
  });
});
