/** What a crash and a failover leave of marks and counts. PostgreSQL 15 only: the others bring no pg_basebackup. */
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type Database, openServer, type Server } from '../../support/postgres/index.ts';
import { enterAnd, markOf, refusal } from './support.ts';

/** How far PostgreSQL writes a sequence ahead into its log. */
const SEQUENCE_AHEAD = 32;

async function prepare(primary: Server): Promise<Database> {
  const database = await primary.createDatabase();
  await database.query("create table shop.t (v int); select kilit.protect('shop.t', 'shop/t')", undefined, 'owner');
  await database.query("select kilit.seal('shop/t', '5')", [], 'app');
  return database;
}

/** The same database on another server. */
async function connectOn(server: Server, { name }: Database, role: string): Promise<pg.Client> {
  const client = new pg.Client({ host: server.host, port: server.port, database: name, user: role });
  client.on('error', () => {});
  await client.connect();
  return client;
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (let attempt = 0; attempt < 1000; attempt += 1) {
    if (await isSo()) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error(`Not within 10 s: ${what}`);
}

describe('after a failover', () => {
  let primary: Server;
  let standby: Server;
  let database: Database;
  beforeEach(async () => {
    primary = await openServer();
    database = await prepare(primary);
    standby = await openServer({ standbyOf: primary });
  });
  afterEach(async () => {
    await standby[Symbol.asyncDispose]();
    await primary[Symbol.asyncDispose]();
  });

  const insertOn = (client: pg.Client, token: string) =>
    enterAnd(client, 'shop/t', token, `insert into shop.t values (${token})`);
  const promote = async (): Promise<pg.Client> => {
    const admin = await connectOn(standby, database, 'postgres');
    await admin.query('select pg_promote()');
    await admin.end();
    return connectOn(standby, database, 'app');
  };

  test('an asynchronous standby that missed the newest mark lets an old token write, until the next seal', async () => {
    const reader = await connectOn(standby, database, 'app');
    const { rows } = await reader.query("select token from kilit.marks where resource = 'shop/t'");
    expect(rows).toEqual([{ token: '5' }]);
    expect(await refusal(enterAnd(reader, 'shop/t', '5'))).toMatchObject({
      code: '25006',
      message: 'cannot execute pg_current_xact_id() during recovery',
    });
    expect(await refusal(reader.query("select kilit.seal('shop/t', '6')"))).toMatchObject({ code: '25006' });
    expect(await refusal(enterAnd(reader, 'shop/t', '4'))).toMatchObject({ code: 'KL001' });
    await reader.end();

    await standby.stop();
    await database.query("select kilit.seal('shop/t', '6')", [], 'app');
    await primary.kill();
    await standby.restart();
    const client = await promote();
    expect(await refusal(insertOn(client, '4'))).toMatchObject({ code: 'KL001' });
    await insertOn(client, '5'); // The limit: 6 has sealed, on the primary that is gone.
    await client.query("select kilit.seal('shop/t', '6')");
    expect(await refusal(insertOn(client, '5'))).toMatchObject({ code: 'KL001' });
    await insertOn(client, '6');
    await client.end();
  });

  test('with a synchronous standby seal returns when the mark is there, whatever synchronous_commit says', async () => {
    await database.query("alter system set synchronous_standby_names = '*'");
    await database.query('select pg_reload_conf()');
    await until('the standby is synchronous', async () => {
      const rows = await database.query("select from pg_stat_replication where sync_state = 'sync'");
      return rows.length === 1;
    });
    await standby.stop();
    const sealing = await database.connect('app');
    await sealing.query('set synchronous_commit = off');
    let answered = false;
    const sealed = sealing.query("select kilit.seal('shop/t', '6')").then(() => (answered = true));
    await until('seal waits for the standby', async () => {
      const rows = await database.query("select from pg_stat_activity where wait_event = 'SyncRep'");
      return rows.length === 1;
    });
    expect(answered).toBe(false);
    await standby.restart();
    await sealed;
    await primary.kill();
    const client = await promote();
    expect(await refusal(insertOn(client, '5'))).toMatchObject({ code: 'KL001' });
    await insertOn(client, '6');
    await client.end();
  });
});

describe('after a crash', () => {
  let server: Server;
  let database: Database;
  beforeAll(async () => {
    // Nothing but a commit that waits for the disk writes the log within the test.
    server = await openServer({ settings: { fsync: 'on', wal_writer_delay: '10s', autovacuum: 'off' } });
    database = await prepare(server);
  });
  afterAll(() => server[Symbol.asyncDispose]());

  const crash = async (): Promise<void> => {
    await server.kill();
    await server.restart();
  };

  test.each([
    ['seal', 'on', '20'],
    ['seal', 'off', '21'],
    ['enter', 'on', '22'],
    ['enter', 'off', '23'],
  ])('the mark that %s raised is there (synchronous_commit %s)', async (raise, commit, token) => {
    const client = await database.connect('app');
    await client.query(`set synchronous_commit = ${commit}`);
    await client.query(`select kilit.${raise}('shop/t', '${token}')`);
    await crash();
    await client.end();
    expect(await markOf(database, 'shop/t')).toBe(token);
    const older = String(Number(token) - 1);
    const stale = await database.connect('app');
    expect(await refusal(enterAnd(stale, 'shop/t', older))).toMatchObject({ code: 'KL001' });
    await stale.end();
  });

  test(`the count of refusals is too great by at most ${SEQUENCE_AHEAD}, or has lost the last ones`, async () => {
    const client = await database.connect('app');
    await client.query("select kilit.seal('count/t', '9')");
    for (const token of ['6', '7', '8']) await refusal(enterAnd(client, 'count/t', token));
    // A commit after them takes their log records to the disk.
    await client.query("select kilit.seal('count/else', '9')");
    await refusal(enterAnd(client, 'count/else', '8'));
    await client.end();
    await crash();
    const counts = await database.query<{ resource: string; refused: string }>(
      "select resource, refused from kilit.marks where resource like 'count/%' order by resource desc",
    );
    const [kept, lost] = counts.map((row) => Number(row.refused));
    expect(kept).toBeGreaterThanOrEqual(3);
    expect(kept).toBeLessThanOrEqual(3 + SEQUENCE_AHEAD);
    expect(lost).toBeLessThanOrEqual(1 + SEQUENCE_AHEAD);
  });
});
