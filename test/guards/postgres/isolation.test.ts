/** The guard in sessions whose transactions are not READ COMMITTED and READ WRITE, and in work that is put off to COMMIT. */
import type { Client, DatabaseError } from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, SERVER_VERSIONS, sharedServer } from '../../support/postgres/index.ts';
import { enterAnd, markOf, refusal, someoneWaits } from './support.ts';

const STRICT = ['repeatable read', 'serializable'] as const;
const enter = (client: Client, resource: string, token: string) =>
  client.query('select kilit.enter($1::text, $2::text)', [resource, token]);

describe.each(SERVER_VERSIONS)('isolation on PostgreSQL %i', (version) => {
  let database: Database;
  const open: Client[] = [];
  const connect = async (...settings: string[]): Promise<Client> => {
    const client = await database.connect('app');
    open.push(client);
    for (const setting of settings) await client.query(`set ${setting}`);
    return client;
  };
  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
    await database.query(
      `create table shop.t (v int primary key, n int not null default 0); select kilit.protect('shop.t', 'shop/t');
       create table shop.free (v int);
       create function shop.copy_free() returns trigger language plpgsql as
         $$ begin insert into shop.t values (new.v); return null; end $$;
       create constraint trigger copy after insert on shop.free deferrable initially deferred
         for each row execute function shop.copy_free()`,
      undefined,
      'owner',
    );
  });
  afterAll(async () => {
    await Promise.all(open.map((client) => client.end().catch(() => {})));
    await database[Symbol.asyncDispose]();
  });

  test.each(STRICT)('enter and seal pass in sessions whose default is %s', async (isolation) => {
    const resource = `default/${isolation}`;
    const client = await connect(`default_transaction_isolation = '${isolation}'`);
    await enterAnd(client, resource, '5');
    await client.query('select kilit.seal($1::text, $2::text)', [resource, '6']);
    await client.query('select kilit.seal($1::text, $2::text)', [resource, '6']);
    await enterAnd(client, resource, '6');
    expect(await refusal(enterAnd(client, resource, '5'))).toMatchObject({ code: 'KL001' });
    expect(await refusal(client.query('select kilit.seal($1::text, $2::text)', [resource, '5']))).toMatchObject({
      code: 'KL001',
    });
  });

  test.each(STRICT)('seal in a session whose default is %s ends a frozen holder', async (isolation) => {
    const resource = `frozen/${isolation}`;
    const setting = `default_transaction_isolation = '${isolation}'`;
    const [frozen, next] = [await connect(setting), await connect(setting)];
    await enterAnd(frozen, resource, '5');
    await frozen.query('begin');
    await enter(frozen, resource, '5');
    const { rows } = await next.query("select kilit.seal($1::text, '6'::text, '0.1 seconds') as ended", [resource]);
    expect(rows).toEqual([{ ended: 1 }]);
    expect(await markOf(database, resource)).toBe('6');
  });

  test.each(STRICT)(
    'seal fails with 40001 if the mark is raised while it waits, and then passes (%s)',
    async (level) => {
      const resource = `raised/${level}`;
      const [old, next] = [await connect(), await connect(`default_transaction_isolation = '${level}'`)];
      await enterAnd(old, resource, '4');
      await old.query('begin');
      await enter(old, resource, '5');
      const seal = () => next.query("select kilit.seal($1::text, '6'::text, '30 seconds')", [resource]);
      const first = refusal(seal());
      await someoneWaits(database);
      await old.query('commit');
      expect(await first).toMatchObject({ code: '40001' });
      await seal();
      expect(await markOf(database, resource)).toBe('6');
    },
  );

  test.each(STRICT)("a holder's connections do not fail each other (%s)", async (isolation) => {
    const setting = `default_transaction_isolation = '${isolation}'`;
    const clients = await Promise.all([1, 2, 3, 4].map(() => connect(setting)));
    const rowOf = (index: number) => index + 1 + STRICT.indexOf(isolation) * 10;
    await enterAnd(clients[0] as Client, 'shop/t', '5');
    for (const index of clients.keys()) {
      await enterAnd(clients[index] as Client, 'shop/t', '5', `insert into shop.t values (${rowOf(index)})`);
    }
    let failed = 0;
    const work = async (client: Client, index: number): Promise<void> => {
      for (let round = 0; round < 50; round += 1) {
        const statement = `update shop.t set n = n + 1 where v = ${rowOf(index)}`;
        await enterAnd(client, 'shop/t', '5', statement).catch((error: DatabaseError) => {
          if (error.code !== '40001') throw error;
          failed += 1;
        });
      }
    };
    await Promise.all(clients.map(work));
    const [sum] = await database.query('select sum(n)::int as n from shop.t where v between $1 and $2', [
      rowOf(0),
      rowOf(3),
    ]);
    // Measured: none. Were the mark written by each transaction, nearly every second one would fail.
    expect(failed).toBeLessThan(10);
    expect(sum).toEqual({ n: 200 - failed });
  });

  test('a read-only transaction has nothing to enter: its enter may check a token, and raises and counts nothing', async () => {
    const client = await connect();
    await enterAnd(client, 'only/read', '5');
    const readOnly = async (token: string, isolation: string) => {
      await client.query(`begin isolation level ${isolation} read only`);
      try {
        await enter(client, 'only/read', token);
      } finally {
        await client.query('rollback');
      }
    };
    await readOnly('5', 'read committed');
    for (const [token, isolation, code] of [
      ['4', 'read committed', 'KL001'],
      ['6', 'read committed', '25006'],
      ['4', 'repeatable read', 'KL001'],
      ['5', 'repeatable read', '25006'],
      ['5', 'serializable', '25006'],
    ] as const) {
      expect(await refusal(readOnly(token, isolation)), `${token} ${isolation}`).toMatchObject({ code });
    }
    const [row] = await database.query("select token, refused from kilit.marks where resource = 'only/read'");
    expect(row).toEqual({ token: '5', refused: '0' });
    await client.query('begin read only');
    expect((await client.query('select count(*) from shop.free')).rows).toEqual([{ count: '0' }]);
    await client.query('commit');
  });

  test.each(['read committed', ...STRICT])(
    'a trigger that is deferred to COMMIT writes as its transaction (%s)',
    async (isolation) => {
      const client = await connect(`default_transaction_isolation = '${isolation}'`);
      const v = 100 + isolation.length;
      await client.query('begin');
      await client.query('insert into shop.free values ($1)', [v]);
      expect(await refusal(client.query('commit'))).toMatchObject({ code: 'KL004' });
      expect(await database.query('select from shop.free where v = $1', [v])).toEqual([]);
      await enterAnd(client, 'shop/t', '5', `insert into shop.free values (${v})`);
      expect(await database.query('select v from shop.t where v = $1', [v])).toEqual([{ v }]);
    },
  );
});
