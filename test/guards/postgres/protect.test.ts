/** A protected table refuses every write of a transaction that did not enter, whatever way it comes. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, SERVER_VERSIONS, sharedServer } from '../../support/postgres/index.ts';
import { refusal } from './support.ts';

const SCHEMA = `
  create table shop.account (id int primary key, balance int not null);
  create table shop.customer (id int primary key);
  create table shop.invoice (id int primary key, customer int references shop.customer on delete cascade on update cascade);
  create table shop.event (at int not null, what text) partition by range (at);
  create table shop.event_1 partition of shop.event for values from (0) to (10);
  create table shop.document (id int, body text);
  create table shop.contract (party text) inherits (shop.document);
  create view shop.rich as select * from shop.account where balance > 0;
  create procedure shop.two_steps() language plpgsql as $$
  begin
    insert into shop.account values (70, 0);
    commit;
    insert into shop.account values (71, 0);
  end $$;
  insert into shop.account values (1, 1), (2, 2);
  insert into shop.customer values (1), (2);
  insert into shop.invoice values (1, 1), (2, 2);
  insert into shop.event values (1, 'a');
  insert into shop.contract values (1, 'b', 'c');
  select kilit.protect('shop.account', 'shop/billing');
  select kilit.protect('shop.invoice', 'shop/billing');
  select kilit.protect('shop.event', 'shop/billing');
  select kilit.protect('shop.contract', 'shop/billing');
  create table shop.event_2 partition of shop.event for values from (10) to (20);
  create table shop.event_3 (at int not null, what text);
  alter table shop.event attach partition shop.event_3 for values from (20) to (30);
  create table shop.event_4 partition of shop.event for values from (30) to (50) partition by range (at);
  create table shop.event_4_1 partition of shop.event_4 for values from (30) to (40);
  grant all on all tables in schema shop to app;
`;

/** Every kind of write to a protected table, and the table that refuses it. */
const WRITES: readonly (readonly [kind: string, statement: string, table: string])[] = [
  ['INSERT', 'insert into shop.account values (9, 9)', 'account'],
  ['INSERT … SELECT without a row', 'insert into shop.account select 9, 9 where false', 'account'],
  ['UPDATE', 'update shop.account set balance = 0', 'account'],
  ['DELETE', 'delete from shop.account where id = 1', 'account'],
  ['TRUNCATE', 'truncate shop.account', 'account'],
  ['TRUNCATE … CASCADE of a parent', 'truncate shop.customer cascade', 'invoice'],
  ['upsert', 'insert into shop.account values (1, 5) on conflict (id) do update set balance = 5', 'account'],
  ['upsert that does nothing', 'insert into shop.account values (1, 5) on conflict do nothing', 'account'],
  [
    'MERGE',
    'merge into shop.account a using (values (1)) v(id) on a.id = v.id when matched then update set balance = 7',
    'account',
  ],
  ['writable CTE', 'with gone as (delete from shop.account returning *) select count(*) from gone', 'account'],
  ['a view', 'update shop.rich set balance = 8', 'account'],
  ['DELETE of a parent that cascades', 'delete from shop.customer where id = 1', 'invoice'],
  ['UPDATE of a parent that cascades', 'update shop.customer set id = 10 where id = 1', 'invoice'],
  ['INSERT into the partitioned table', "insert into shop.event values (2, 'x')", 'event'],
  ['INSERT straight into a partition', "insert into shop.event_1 values (2, 'x')", 'event_1'],
  ['UPDATE straight of a partition', "update shop.event_1 set what = 'y'", 'event_1'],
  ['DELETE straight from a partition', 'delete from shop.event_1', 'event_1'],
  ['TRUNCATE of a partition', 'truncate shop.event_1', 'event_1'],
  ['INSERT into a partition created later', "insert into shop.event_2 values (11, 'x')", 'event_2'],
  ['TRUNCATE of a partition created later', 'truncate shop.event_2', 'event_2'],
  ['INSERT into a partition attached later', "insert into shop.event_3 values (21, 'x')", 'event_3'],
  ['TRUNCATE of a partition attached later', 'truncate shop.event_3', 'event_3'],
  ['INSERT into a partition of a partition', "insert into shop.event_4_1 values (31, 'x')", 'event_4_1'],
  ['TRUNCATE of a partition of a partition', 'truncate shop.event_4_1', 'event_4_1'],
  ['UPDATE of the parent of an inheritor', "update shop.document set body = 'x'", 'contract'],
  ['TRUNCATE of the parent of an inheritor', 'truncate shop.document', 'contract'],
];

describe.each(SERVER_VERSIONS)('protected tables on PostgreSQL %i', (version) => {
  let database: Database;
  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
    await database.query(SCHEMA, undefined, 'owner');
  });
  afterAll(() => database[Symbol.asyncDispose]());

  const contents = () =>
    database.query(`select (select json_agg(a order by a.id) from shop.account a) as account, (select json_agg(c order by c.id) from shop.customer c) as customer,
      (select json_agg(i order by i.id) from shop.invoice i) as invoice, (select json_agg(e order by e.at) from shop.event e) as event, (select json_agg(d) from shop.document d) as document`);

  test.each(WRITES)('refuse %s', async (_kind, statement, table) => {
    const before = await contents();
    expect(await refusal(database.query(statement, undefined, 'app'))).toMatchObject({
      code: 'KL004',
      message: expect.stringMatching(
        new RegExp(
          `^(INSERT|UPDATE|DELETE|TRUNCATE) on shop\\.${table} refused: this transaction has not entered 'shop/billing'$`,
        ),
      ),
      hint: "Begin the transaction with: select kilit.enter('shop/billing', TOKEN).",
    });
    expect(await contents()).toEqual(before);
  });

  test.each(WRITES)('let %s pass after enter', async (_kind, statement) => {
    const client = await database.connect('app');
    await client.query('begin');
    await client.query("select kilit.enter('shop/billing', '5')");
    await client.query(statement);
    await client.query('rollback');
    await client.end();
  });

  test('refuse COPY, and let it pass after enter', async () => {
    const copy = 'copy shop.account from stdin;\n50\t1\n51\t2\n\\.\n';
    const refused = await database.psql(`\\set VERBOSITY verbose\n${copy}`, 'app');
    expect(refused.stderr).toContain(
      "KL004: INSERT on shop.account refused: this transaction has not entered 'shop/billing'",
    );
    const entered = await database.psql(`begin;\nselect kilit.enter('shop/billing', '5');\n${copy}commit;\n`, 'app');
    expect(entered).toMatchObject({ code: 0 });
    expect(await database.query('select id from shop.account where id >= 50 order by id')).toEqual([
      { id: 50 },
      { id: 51 },
    ]);
  });

  test('refuse a write after the transaction went back before its enter, and again after its end', async () => {
    const client = await database.connect('app');
    await client.query('begin');
    await client.query('savepoint before');
    await client.query("select kilit.enter('shop/billing', '5')");
    await client.query('insert into shop.account values (60, 0)');
    await client.query('rollback to before');
    expect(await refusal(client.query('insert into shop.account values (61, 0)'))).toMatchObject({ code: 'KL004' });
    await client.query('rollback to before');
    await client.query("select kilit.enter('shop/billing', '5')");
    await client.query('savepoint inside');
    await client.query('insert into shop.account values (62, 0)');
    await client.query('release inside');
    await client.query('commit');
    expect(await refusal(client.query('insert into shop.account values (63, 0)'))).toMatchObject({ code: 'KL004' });
    await client.end();
    expect(await database.query('select id from shop.account where id between 60 and 69')).toEqual([{ id: 62 }]);
  });

  test('refuse what a procedure writes after its own commit, unless it enters again', async () => {
    const client = await database.connect('app');
    expect(await refusal(client.query('call shop.two_steps()'))).toMatchObject({ code: 'KL004' });
    await database.query(
      `create procedure shop.entering() language plpgsql as $$
       begin
         perform kilit.enter('shop/billing', '5'); insert into shop.account values (80, 0); commit;
         perform kilit.enter('shop/billing', '5'); insert into shop.account values (81, 0); commit;
         insert into shop.account values (82, 0);
       end $$`,
      undefined,
      'owner',
    );
    expect(await refusal(client.query('call shop.entering()'))).toMatchObject({ code: 'KL004' });
    await client.end();
    expect(await database.query('select id from shop.account where id between 70 and 89 order by id')).toEqual([
      { id: 80 },
      { id: 81 },
    ]);
  });

  test('refuse a transaction that entered another resource, and let one enter two', async () => {
    const client = await database.connect('app');
    await client.query('begin');
    await client.query("select kilit.enter('shop/other', '7')");
    expect(await refusal(client.query('insert into shop.account values (90, 0)'))).toMatchObject({ code: 'KL004' });
    await client.query('rollback');
    await client.query('begin');
    await client.query("select kilit.enter('shop/other', '7'), kilit.enter('shop/billing', '5')");
    await client.query('insert into shop.account values (90, 0)');
    const { rows } = await client.query(
      "select kilit.entered('shop/other') as other, kilit.entered('shop/billing') as billing, kilit.entered('shop/none') as none",
    );
    await client.query('commit');
    expect(rows).toEqual([{ other: '7', billing: '5', none: null }]);
    expect(await database.query("select kilit.entered('shop/billing') as entered", undefined, 'app')).toEqual([
      { entered: null },
    ]);
    await client.end();
  });

  test('say which tables are protected, and stop after unprotect', async () => {
    await database.query(
      `create table shop.free (id int) partition by range (id); create table shop.free_1 partition of shop.free for values from (0) to (9);
       select kilit.protect('shop.free', 'shop/free'); select kilit.protect('shop.free', 'shop/free'); grant all on shop.free to app`,
      undefined,
      'owner',
    );
    const shown = () =>
      database.query(
        "select table_name, state from kilit.protections where resource = 'shop/free' order by 1",
        undefined,
        'app',
      );
    expect(await shown()).toEqual([
      { table_name: 'shop.free', state: 'enabled' },
      { table_name: 'shop.free_1', state: 'enabled' },
    ]);
    expect(
      await refusal(database.query("select kilit.protect('shop.free', 'shop/else')", undefined, 'owner')),
    ).toMatchObject({
      code: 'KL002',
      message: "table shop.free is already protected by 'shop/free'",
    });
    expect(
      await refusal(database.query("select kilit.protect('shop.rich', 'shop/else')", undefined, 'owner')),
    ).toMatchObject({
      code: 'KL002',
      message: 'shop.rich is not a table',
    });
    await database.query('alter table shop.free_1 disable trigger kilit_statement', undefined, 'owner');
    expect(await shown()).toEqual([
      { table_name: 'shop.free', state: 'enabled' },
      { table_name: 'shop.free_1', state: 'disabled' },
    ]);
    expect((await refusal(database.query("select kilit.unprotect('shop.free')", undefined, 'app'))).code).toBe('42501');
    await database.query("select kilit.unprotect('shop.free')", undefined, 'owner');
    expect(await shown()).toEqual([]);
    await database.query('insert into shop.free values (1)', undefined, 'app');
    expect(await refusal(database.query("select kilit.unprotect('shop.free')", undefined, 'owner'))).toMatchObject({
      code: 'KL002',
      message: 'table shop.free is not protected',
    });
  });
});
