/** pg_dump and restore: marks, counts and protection go along. PostgreSQL 15 only: the others bring no pg_dump. */
import { dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { run } from '../../../tools/cluster/exec.ts';
import { type Database, program, sharedServer } from '../../support/postgres/index.ts';
import { enterAnd, refusal } from './support.ts';

const MARKS =
  'select resource, token, mode, refused, sealed_at is not null as sealed from kilit.marks order by resource';
const PROTECTIONS = 'select table_name, resource, state from kilit.protections order by table_name';

/** Debian has it beside pg_basebackup, in the same package. */
async function dump(database: Database, ...options: string[]): Promise<string> {
  const { stdout } = await run(join(dirname(program('pg_basebackup')), 'pg_dump'), [...options, database.url()]);
  return stdout;
}

describe('a dump', () => {
  let database: Database;
  let restored: Database;
  const write = async (token: string, statement: string): Promise<void> => {
    const client = await restored.connect('app');
    try {
      await enterAnd(client, 'shop/t', token, statement);
    } finally {
      await client.end();
    }
  };
  beforeAll(async () => {
    const server = sharedServer();
    database = await server.createDatabase();
    restored = await server.createDatabase({ guard: false });
    await restored.query('drop schema shop');
    await database.query(
      `create table shop.t (v int, token bigint default kilit.entered('shop/t'));
       create table shop.event (at int) partition by range (at);
       create table shop.event_1 partition of shop.event for values from (0) to (10);
       select kilit.protect('shop.t', 'shop/t'); select kilit.protect('shop.event', 'shop/t')`,
      undefined,
      'owner',
    );
    const client = await database.connect('app');
    await client.query("select kilit.seal('shop/else', '9')");
    await enterAnd(client, 'shop/t', '6', 'insert into t values (1)', 'insert into event values (1)');
    await refusal(enterAnd(client, 'shop/t', '5'));
    await client.end();
  });
  afterAll(async () => {
    await restored[Symbol.asyncDispose]();
    await database[Symbol.asyncDispose]();
  });

  test('restored into another database has the marks, the counts and the protection', async () => {
    const sql = await dump(database);
    expect(await restored.psql(sql)).toMatchObject({ code: 0, stderr: '' });
    expect(await restored.query(MARKS)).toEqual([
      { resource: 'shop/else', token: '9', mode: 'enforce', refused: '0', sealed: true },
      { resource: 'shop/t', token: '6', mode: 'enforce', refused: '1', sealed: false },
    ]);
    expect(await restored.query(PROTECTIONS)).toEqual([
      { table_name: 'shop.event', resource: 'shop/t', state: 'enabled' },
      { table_name: 'shop.event_1', resource: 'shop/t', state: 'enabled' },
      { table_name: 'shop.t', resource: 'shop/t', state: 'enabled' },
    ]);
    expect(await refusal(write('5', 'select'))).toMatchObject({ code: 'KL001' });
    await write('6', 'insert into shop.t values (2)');
    await write('7', 'insert into shop.event_1 values (2)');
    expect(await restored.query('select v, token from shop.t')).toEqual([
      { v: 1, token: '6' },
      { v: 2, token: '6' },
    ]);
  });

  test('restored leaves nothing to be done: later partitions are protected too', async () => {
    const later = 'create table shop.event_2 partition of shop.event for values from (10) to (20)';
    await restored.query(later, undefined, 'owner');
    for (const statement of ['insert into shop.t values (3)', 'truncate shop.event_2']) {
      expect(await refusal(restored.query(statement, undefined, 'owner'))).toMatchObject({ code: 'KL004' });
    }
  });

  test('of data alone is refused by a protected table, unless a superuser disables triggers', async () => {
    const options = ['--data-only', '--table=shop.event_1'];
    const plain = await restored.psql(await dump(database, ...options));
    expect(plain).toMatchObject({
      code: 3,
      stderr: expect.stringContaining("INSERT on shop.event_1 refused: this transaction has not entered 'shop/t'"),
    });
    const count = 'select count(*)::int as n from shop.event_1';
    expect(await restored.query(count)).toEqual([{ n: 2 }]);
    expect(await restored.psql(await dump(database, ...options, '--disable-triggers'))).toMatchObject({ code: 0 });
    expect(await restored.query(count)).toEqual([{ n: 3 }]);
  });
});
