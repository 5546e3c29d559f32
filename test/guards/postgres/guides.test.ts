/** The SQL in the pages for users, taken from the pages: it runs, and does what the text beside it says. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { repositoryRoot } from '../../../tools/cluster/paths.ts';
import { type Database, sharedServer } from '../../support/postgres/index.ts';
import { enterAnd, pidOf, refusal, someoneWaits } from './support.ts';

const PAGES = {
  which: 'docs/guides/which-lock.md',
  nothing: 'docs/guides/nothing-to-check.md',
  queue: 'docs/guides/a-queue-is-not-a-lock.md',
  reference: 'docs/guards/postgres.md',
} as const;
type Page = keyof typeof PAGES;

const textOf = (page: Page): string => readFileSync(join(repositoryRoot, PAGES[page]), 'utf8');

/** The blocks of a page that stand below a line `<!-- tested: NAME -->`. */
function blocksOf(page: Page): ReadonlyMap<string, string> {
  const marked = /^ *<!-- tested: ([\w-]+) -->\n *```sql\n([^`]*)```$/gm;
  return new Map([...textOf(page).matchAll(marked)].map(([, name = '', sql = '']) => [name, sql]));
}

/** One block, with literals in place of `$1`, `$2`, …: several statements can have no parameters. */
function sqlOf(page: Page, name: string, ...values: readonly (string | number)[]): string {
  const sql = blocksOf(page).get(name);
  if (sql === undefined) throw new Error(`${PAGES[page]} has no block '${name}'.`);
  return sql.replaceAll(/\$(\d)/g, (_, n: string) => pg.escapeLiteral(String(values[Number(n) - 1])));
}

test.each([
  ['which', ['unique', 'version']],
  ['nothing', ['outbox', 'decide', 'sent']],
  ['queue', ['jobs', 'take-short', 'finish-short', 'timeout', 'take', 'renew', 'finish', 'plan']],
  ['reference', ['roles', 'table', 'observe', 'enforce']],
] as const)('every SQL block of the page %s is run below', (page, names) => {
  expect([...blocksOf(page).keys()]).toEqual(names);
  expect(textOf(page).match(/```sql/g)).toHaveLength(names.length);
});

describe('the guides', () => {
  let database: Database;
  const open: pg.Client[] = [];
  const connect = async (role = 'app'): Promise<pg.Client> => {
    const client = await database.connect(role);
    open.push(client);
    return client;
  };
  const changed = async (client: pg.Client, sql: string): Promise<number | null> => (await client.query(sql)).rowCount;
  beforeAll(async () => {
    database = await sharedServer().createDatabase();
    await database.query(
      `create table charge (customer int, month text, cents int, unique (customer, month));
       create table price (id text primary key, cents int, version int not null default 1);
       insert into price (id, cents) values ('book', 100);
       create table schedule (name text primary key, planned_until date);
       insert into schedule values ('invoices', '2026-07-01');
       select kilit.protect('schedule', 'shop/planner');
       ${sqlOf('nothing', 'outbox')}; ${sqlOf('queue', 'jobs')}`,
      undefined,
      'owner',
    );
  });
  afterEach(async () => {
    await Promise.all(open.splice(0).map((client) => client.end().catch(() => {})));
    await database.query('delete from shop.job; delete from shop.charge');
  });
  afterAll(() => database[Symbol.asyncDispose]());

  describe('which lock', () => {
    test('a unique constraint lets the second charge of a month change nothing', async () => {
      const [a, b] = [await connect(), await connect()];
      await a.query('begin');
      expect(await changed(a, sqlOf('which', 'unique', 42, '2026-07', 990))).toBe(1);
      const second = changed(b, sqlOf('which', 'unique', 42, '2026-07', 500));
      await someoneWaits(database);
      await a.query('commit');
      expect(await second).toBe(0);
      expect(await database.query('select cents from shop.charge')).toEqual([{ cents: 990 }]);
    });

    test('a version lets only the first of two changes pass that rest on the same reading', async () => {
      const client = await connect();
      expect(await changed(client, sqlOf('which', 'version', 110, 'book', 1))).toBe(1);
      expect(await changed(client, sqlOf('which', 'version', 120, 'book', 1))).toBe(0);
      expect(await database.query('select cents, version from shop.price')).toEqual([{ cents: 110, version: 2 }]);
    });
  });

  describe('nothing to check', () => {
    const decide = (token: string) => sqlOf('nothing', 'decide', token);
    const sent = (token: string) => sqlOf('nothing', 'sent', token, 'charge/2026-07/customer-42');
    const outbox = () => database.query('select key, sent_at is not null as sent from shop.outbox');
    const refused = async (sql: string) => {
      const client = await connect();
      expect(await refusal(client.query(sql))).toMatchObject({ code: 'KL001' });
    };

    test('a late holder puts no message into the outbox, and the next makes the same key, so there is one', async () => {
      const client = await connect();
      await client.query("select kilit.seal('shop/billing', '4711')");
      await refused(decide('4710'));
      expect(await outbox()).toEqual([]);
      expect(await database.query('select from shop.charge')).toEqual([]);
      await client.query(decide('4711'));
      await client.query(decide('4720'));
      expect(await outbox()).toEqual([{ key: 'charge/2026-07/customer-42', sent: false }]);
      expect(await database.query('select customer, cents from shop.charge')).toEqual([{ customer: 42, cents: 990 }]);
      await refused(sent('4711'));
      expect(await outbox()).toMatchObject([{ sent: false }]);
      await client.query(sent('4720'));
      expect(await outbox()).toMatchObject([{ sent: true }]);
    });
  });

  describe('a queue', () => {
    const addJobs = (count: number) =>
      database.query('insert into shop.job (payload) select n::text from generate_series(1, $1) n', [count]);
    const take = async (client: pg.Client, block = 'take') =>
      (await client.query<{ id: string; payload: string; attempt: number }>(sqlOf('queue', block))).rows[0];
    const takeSome = async (client: pg.Client, block = 'take') => {
      const job = await take(client, block);
      if (job === undefined) throw new Error('There is no job.');
      return job;
    };

    test('never gives one job to two workers, and gives each to one', async () => {
      await addJobs(40);
      const taken: string[] = [];
      const worker = async (): Promise<void> => {
        const client = await connect();
        for (;;) {
          await client.query('begin');
          const job = await take(client, 'take-short');
          if (job === undefined) break;
          taken.push(job.id);
          expect(await changed(client, sqlOf('queue', 'finish-short', job.id, 'done'))).toBe(1);
          await client.query('commit');
        }
      };
      await Promise.all([worker(), worker(), worker(), worker()]);
      expect(taken).toHaveLength(40);
      expect(new Set(taken).size).toBe(40);
    });

    test('passes over a row that an open transaction has taken, and gives it back when that ends', async () => {
      await addJobs(2);
      const [a, b] = [await connect(), await connect()];
      await a.query('begin');
      expect(await take(a, 'take-short')).toMatchObject({ payload: '1' });
      expect(await take(b, 'take-short')).toMatchObject({ payload: '2' });
      await a.query('rollback');
      expect(await take(b, 'take-short')).toMatchObject({ payload: '1' });
    });

    test('a frozen worker of a short job loses session, job and write by the idle timeout', async () => {
      await addJobs(1);
      const [frozen, next] = [await connect(), await connect()];
      await frozen.query(sqlOf('queue', 'timeout'));
      const { rows } = await frozen.query('show idle_in_transaction_session_timeout');
      expect(rows).toEqual([{ idle_in_transaction_session_timeout: '1min' }]);
      const pid = await pidOf(frozen);
      await frozen.query("set idle_in_transaction_session_timeout = '50ms'");
      await frozen.query('begin');
      const { id } = await takeSome(frozen, 'take-short');
      const alive = () => database.query('select from pg_stat_activity where pid = $1', [pid]);
      await expect.poll(async () => (await alive()).length, { timeout: 10_000 }).toBe(0);
      expect(await take(next, 'take-short')).toMatchObject({ id });
      await changed(next, sqlOf('queue', 'finish-short', id, 'by the next'));
      await expect(frozen.query(sqlOf('queue', 'finish-short', id, 'too late'))).rejects.toThrow(
        /terminat|connection/i,
      );
      expect(await database.query('select result from shop.job')).toEqual([{ result: 'by the next' }]);
    });

    test('gives long jobs to one worker each, with the first attempt, until the lease ends', async () => {
      await addJobs(8);
      const clients = await Promise.all(Array.from({ length: 4 }, () => connect()));
      const taken = await Promise.all([...clients, ...clients].map((client) => takeSome(client)));
      expect(taken.map((job) => Number(job.payload)).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      expect(new Set(taken.map((job) => job.attempt))).toEqual(new Set([1]));
      expect(await take(clients[0] as pg.Client)).toBeUndefined();
    });

    test('the attempt refuses a late worker, before the next one has finished and after', async () => {
      await addJobs(1);
      const [late, next] = [await connect(), await connect()];
      const first = await takeSome(late);
      expect(first.attempt).toBe(1);
      expect(await changed(late, sqlOf('queue', 'renew', first.id, 1))).toBe(1);
      await database.query("update shop.job set leased_until = now() - interval '1 second'");
      expect(await takeSome(next)).toEqual({ ...first, attempt: 2 });
      expect(await changed(late, sqlOf('queue', 'renew', first.id, 1))).toBe(0);
      expect(await changed(late, sqlOf('queue', 'finish', first.id, 1, 'too late'))).toBe(0);
      expect(await changed(next, sqlOf('queue', 'renew', first.id, 2))).toBe(1);
      expect(await changed(next, sqlOf('queue', 'finish', first.id, 2, 'by the next'))).toBe(1);
      expect(await changed(late, sqlOf('queue', 'finish', first.id, 1, 'far too late'))).toBe(0);
      expect(await take(next)).toBeUndefined();
      expect(await database.query('select result from shop.job')).toEqual([{ result: 'by the next' }]);
    });

    test('the attempt refuses a worker that finishes while the next one is taking the job', async () => {
      await addJobs(1);
      const [late, next] = [await connect(), await connect()];
      const { id } = await takeSome(late);
      await database.query("update shop.job set leased_until = now() - interval '1 second'");
      await next.query('begin');
      await takeSome(next);
      const finishing = changed(late, sqlOf('queue', 'finish', id, 1, 'too late'));
      await someoneWaits(database);
      await next.query('commit');
      expect(await finishing).toBe(0);
    });

    test('the jobs of a late planner are refused with its plan', async () => {
      const [late, next] = [await connect(), await connect()];
      await late.query("select kilit.seal('shop/planner', '10')");
      await next.query("select kilit.seal('shop/planner', '11')");
      expect(await refusal(late.query(sqlOf('queue', 'plan', '10')))).toMatchObject({ code: 'KL001' });
      expect(await database.query('select from shop.job')).toEqual([]);
      await next.query(sqlOf('queue', 'plan', '11'));
      expect(await database.query('select payload from shop.job')).toEqual([{ payload: 'invoices of 2026-07' }]);
      expect(await database.query('select planned_until::text from shop.schedule')).toEqual([
        { planned_until: '2026-08-01' },
      ]);
    });
  });
});

describe('the reference', () => {
  let database: Database;
  const insert = "insert into shop.charge (customer, month, cents) values (42, '2026-07', 990)";
  beforeAll(async () => {
    database = await sharedServer().createDatabase();
    await database.query('drop schema shop');
    await database.query(sqlOf('reference', 'roles'));
    await database.query(sqlOf('reference', 'table'));
  });
  afterAll(async () => {
    await database.query('drop owned by shop_owner, shop_app; drop role shop_owner, shop_app');
    await database[Symbol.asyncDispose]();
  });

  test('its roles: the program writes after enter only, and cannot take the protection away', async () => {
    const app = await database.connect('shop_app');
    expect(await refusal(app.query(insert))).toMatchObject({ code: 'KL004' });
    await enterAnd(app, 'shop/billing', '4711', insert);
    for (const act of ["select kilit.unprotect('shop.charge')", 'drop table shop.charge']) {
      expect(await refusal(app.query(act))).toMatchObject({ code: '42501' });
    }
    await app.end();
    expect(await database.query('select customer, token from shop.charge')).toEqual([{ customer: 42, token: '4711' }]);
  });

  test('its way to introduce the guard: observed writes pass and are listed, enforced ones are refused', async () => {
    const [app, admin] = [await database.connect('shop_app'), await database.connect('admin')];
    await admin.query(sqlOf('reference', 'observe'));
    await app.query(insert);
    const answers = (await admin.query(sqlOf('reference', 'enforce'))) as unknown as pg.QueryResult[];
    expect(answers[0]?.rows).toMatchObject([{ kind: 'observed-not-entered', table_name: 'shop.charge', token: null }]);
    expect(await refusal(app.query(insert))).toMatchObject({ code: 'KL004' });
    await Promise.all([app.end(), admin.end()]);
  });

  test.each([
    ['no type, as psycopg and pgx send it', '', '{text,text}'],
    ['varchar, as JDBC sends a string', '(varchar, varchar)', '{"character varying","character varying"}'],
    ['a 64-bit integer', '(varchar, bigint)', '{"character varying",bigint}'],
  ])('enter is found for parameters of %s', async (_what, types, resolved) => {
    const client = await database.connect('app');
    await client.query(`prepare enter ${types} as select kilit.enter($1, $2)`);
    const { rows } = await client.query("execute enter('any/driver', '9')");
    expect(rows).toEqual([{ enter: '9' }]);
    const prepared = await client.query('select parameter_types::text from pg_prepared_statements');
    expect(prepared.rows).toEqual([{ parameter_types: resolved }]);
    await client.end();
  });
});
