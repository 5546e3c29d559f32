/** kilit.seal where something is in its way that is not just an older holder's transaction. */
import type { Client } from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Database, sharedServer } from '../../support/postgres/index.ts';
import { EDGE_VERSIONS } from './edge-versions.ts';
import { enterAnd, markOf, refusal, someoneWaits } from './support.ts';

describe.each(EDGE_VERSIONS)('seal on PostgreSQL %i', (version) => {
  let database: Database;
  let round = 0;
  let resource = '';
  const open: Client[] = [];
  const connect = async (role = 'app') => {
    const client = await database.connect(role);
    open.push(client);
    return client;
  };
  /** A transaction that has entered, and does not go on. */
  const frozen = async (token: string) => {
    const client = await connect();
    await client.query('begin');
    await enter(client, token);
    return client;
  };
  const enter = (client: Client, token: string) =>
    client.query('select kilit.enter($1::text, $2::text)', [resource, token]);
  const seal = (token: string, wait = '0.2 seconds') =>
    database.query<{ ended: number }>(
      'select kilit.seal($1::text, $2::text, $3::interval) as ended',
      [resource, token, wait],
      'app2',
    );
  const isAlive = (client: Client) =>
    client.query('select 1').then(
      () => true,
      () => false,
    );

  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
  });
  beforeEach(async () => {
    round += 1;
    resource = `blocked/${round}`;
    await enterAnd(await connect(), resource, '5');
  });
  afterEach(() => Promise.all(open.splice(0).map((client) => client.end().catch(() => {}))));
  afterAll(() => database[Symbol.asyncDispose]());

  test('ends a frozen holder that waited to raise the mark and found it raised by a sibling', async () => {
    const sibling = await frozen('7');
    const holder = await connect();
    await holder.query('begin');
    const entering = enter(holder, '7');
    await someoneWaits(database);
    await sibling.query('commit');
    await entering;
    expect(await seal('8')).toEqual([{ ended: 1 }]);
  });

  test('ends a holder that sealed in a transaction and froze there, after a sibling had sealed', async () => {
    const sibling = await frozen('5');
    const holder = await connect();
    await holder.query('begin');
    const sealing = holder.query("select kilit.seal($1::text, '7'::text, '10 s')", [resource]);
    await someoneWaits(database);
    await sibling.query('commit');
    await sealing;
    const second = await connect();
    await second.query('begin');
    const again = second.query("select kilit.seal($1::text, '7'::text, '10 s')", [resource]);
    await someoneWaits(database);
    await holder.query('commit');
    await again;
    // It found the mark raised, and keeps nothing locked.
    expect(await seal('8')).toEqual([{ ended: 0 }]);
    await second.query('commit');
  });

  test('names an administrator whose change of the mode is open, and so does reset', async () => {
    const admin = await connect('admin');
    await admin.query('begin');
    await admin.query("select kilit.set_mode($1, 'observe', 'a try')", [resource]);
    const answer = { code: 'KL005', message: expect.stringMatching(/blocked by session \d+ of role admin/) };
    expect(await refusal(seal('6'))).toMatchObject(answer);
    expect(
      await refusal(database.query("select kilit.reset($1, '3'::text, 'a try')", [resource], 'admin')),
    ).toMatchObject(answer);
    await admin.query('rollback');
    expect(await seal('6')).toEqual([{ ended: 0 }]);
  });

  test('does not end a holder for a token that jumps too far, nor lets it keep others waiting', async () => {
    const holder = await frozen('5');
    expect(await refusal(seal('999999999999999999', '0'))).toMatchObject({ code: 'KL003' });
    const wrong = await connect();
    expect(await refusal(enter(wrong, '999999999999999999'))).toMatchObject({ code: 'KL003' });
    expect(await isAlive(holder)).toBe(true);
  });

  test('by an older token with an old snapshot does not end a newer holder', async () => {
    const old = await connect();
    await old.query('begin isolation level repeatable read');
    await old.query('select 1');
    await seal('7');
    const newer = await frozen('7');
    const late = old.query("select kilit.seal($1::text, '6'::text, '0.1 s')", [resource]);
    expect(await refusal(late)).toMatchObject({ code: '40001' });
    expect(await isAlive(newer)).toBe(true);
  });

  test('ends the older holder also where statement_timeout is shorter than its wait', async () => {
    const holder = await frozen('5');
    const hasty = await connect('app2');
    await hasty.query("set statement_timeout = '1s'");
    const { rows } = await hasty.query("select kilit.seal($1::text, '6'::text, '10 s') as ended", [resource]);
    expect(rows).toEqual([{ ended: 1 }]);
    expect(await isAlive(holder)).toBe(false);
  });

  test('says which sessions it had ended before it gave up', async () => {
    await frozen('5');
    const prepared = await frozen('5');
    await prepared.query(`prepare transaction 'kilit-${version}-${round}'`);
    expect(await refusal(seal('6', '0.1 s'))).toMatchObject({
      code: 'KL005',
      message: expect.stringContaining(`prepared transaction 'kilit-${version}-${round}'`),
      detail: expect.stringMatching(/^Sessions that were ended: \d+\.$/),
      hint: expect.stringContaining('The mark was not changed.'),
    });
    expect(await markOf(database, resource)).toBe('5');
    await database.query(`rollback prepared 'kilit-${version}-${round}'`);
  });

  test('cannot end the first transaction of a resource that was never seen, and names it', async () => {
    resource = `blocked/new-${round}`;
    await frozen('5');
    expect(await refusal(seal('6'))).toMatchObject({ code: 'KL005', message: expect.stringContaining('of role app') });
  });
});
