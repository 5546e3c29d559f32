/** Protected tables under logical replication: rows arrive, marks do not. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, sharedServer } from '../../support/postgres/index.ts';
import { EDGE_VERSIONS } from './edge-versions.ts';
import { enterAnd, markOf, refusal } from './support.ts';

const TABLES = `
  create table shop.account (id int primary key, balance int not null);
  create table shop.event (at int primary key) partition by range (at);
  create table shop.event_1 partition of shop.event for values from (0) to (10);
  select kilit.protect('shop.account', 'shop/t');
  select kilit.protect('shop.event', 'shop/t')`;

describe.each(EDGE_VERSIONS)('logical replication on PostgreSQL %i', (version) => {
  const server = sharedServer(version);
  let publisher: Database;
  let subscriber: Database;
  const slot = `kilit_test_${process.pid}`;
  const contents = (database: Database) =>
    database.query(
      'select (select json_agg(a order by id) from shop.account a) as account, (select json_agg(e order by at) from shop.event e) as event',
    );
  const write = async (database: Database, token: string, ...statements: string[]): Promise<void> => {
    const client = await database.connect('app');
    try {
      await enterAnd(client, 'shop/t', token, ...statements);
    } finally {
      await client.end();
    }
  };
  const arrived = async (): Promise<void> => {
    const wanted = JSON.stringify(await contents(publisher));
    for (let attempt = 0; attempt < 1000; attempt += 1) {
      if (JSON.stringify(await contents(subscriber)) === wanted) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`The subscriber has not within 20 s: ${wanted}`);
  };

  beforeAll(async () => {
    publisher = await server.createDatabase();
    subscriber = await server.createDatabase();
    for (const database of [publisher, subscriber]) await database.query(TABLES, undefined, 'owner');
    await write(publisher, '5', 'insert into account values (1, 10)', 'insert into event values (1)');
    await publisher.query('create publication shop for tables in schema shop');
    // Both databases are in one server, so the slot cannot be made by the subscription: it would wait for itself.
    await publisher.query("select pg_create_logical_replication_slot($1, 'pgoutput')", [slot]);
    await subscriber.query(
      `create subscription shop connection 'host=${server.host} port=${server.port} user=postgres dbname=${publisher.name}'
       publication shop with (create_slot = false, slot_name = '${slot}')`,
    );
  });
  afterAll(async () => {
    await subscriber.query('drop subscription shop'); // And the slot: it would keep the other database.
    await subscriber[Symbol.asyncDispose]();
    await publisher[Symbol.asyncDispose]();
  });

  test('rows arrive in tables that are protected there too, by copy and by apply', async () => {
    await arrived();
    await write(
      publisher,
      '6',
      'insert into account values (2, 20)',
      'update account set balance = 11 where id = 1',
      'insert into event values (2)',
      'delete from event where at = 1',
    );
    await arrived();
    expect(await contents(subscriber)).toEqual([
      {
        account: [
          { id: 1, balance: 11 },
          { id: 2, balance: 20 },
        ],
        event: [{ at: 2 }],
      },
    ]);
    const states = await subscriber.query('select distinct state from kilit.protections');
    expect(states).toEqual([{ state: 'enabled' }]);
  });

  test('TRUNCATE arrives', async () => {
    const client = await publisher.connect('owner');
    await enterAnd(client, 'shop/t', '6', 'truncate shop.event');
    await client.end();
    await arrived();
    expect(await contents(subscriber)).toMatchObject([{ event: null }]);
  });

  test('writes that are made at the subscriber are refused without enter', async () => {
    for (const statement of ['delete from account', 'insert into event values (3)', 'delete from event_1']) {
      expect(await refusal(subscriber.query(statement, [], 'app'))).toMatchObject({ code: 'KL004' });
    }
  });

  test('the mark does not arrive: the subscriber has its own, and an old token passes there until the next seal', async () => {
    expect(await markOf(publisher, 'shop/t')).toBe('6');
    expect(await markOf(subscriber, 'shop/t')).toBe('0');
    await write(subscriber, '5', 'insert into account values (50, 5)');
    await subscriber.query("select kilit.seal('shop/t', '6')", [], 'app');
    expect(await refusal(write(subscriber, '5', 'delete from account where id = 50'))).toMatchObject({ code: 'KL001' });
    await write(subscriber, '6', 'delete from account where id = 50');
  });

  test('a publication FOR ALL TABLES would carry the tables of marks as well; one for schemas does not', async () => {
    await publisher.query('create publication everything for all tables');
    const kilitTables = (name: string) =>
      publisher.query(
        "select tablename from pg_publication_tables where pubname = $1 and schemaname = 'kilit' order by 1",
        [name],
      );
    expect(await kilitTables('everything')).toEqual([
      { tablename: 'change' },
      { tablename: 'mark' },
      { tablename: 'refusal' },
    ]);
    expect(await kilitTables('shop')).toEqual([]);
  });
});
