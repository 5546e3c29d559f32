/** What people do by hand: reset, observe, reports; and what the views show. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { guardSql, uninstallSql } from '../../support/postgres/guard.ts';
import { type Database, SERVER_VERSIONS, sharedServer } from '../../support/postgres/index.ts';
import { enterAnd, markOf, refusal } from './support.ts';

describe.each(SERVER_VERSIONS)('administration on PostgreSQL %i', (version) => {
  let database: Database;
  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
    await database.query("create table shop.t (v int); select kilit.protect('shop.t', 'shop/t')", undefined, 'owner');
  });
  afterAll(() => database[Symbol.asyncDispose]());

  const enter = async (resource: string, token: string, ...statements: string[]) => {
    const client = await database.connect('app');
    try {
      await enterAnd(client, resource, token, ...statements);
    } finally {
      await client.end();
    }
  };

  test('reset sets the mark to a smaller token and keeps who and why', async () => {
    await enter('reset/a', '500');
    await database.query("select kilit.reset('reset/a', '100', 'the cluster was restored')", [], 'admin');
    expect(await markOf(database, 'reset/a')).toBe('100');
    await enter('reset/a', '101');
    const rows = await database.query(
      "select what, old_value, new_value, reason, role from kilit.changes where resource = 'reset/a'",
      [],
      'app',
    );
    expect(rows).toEqual([
      { what: 'token', old_value: '500', new_value: '100', reason: 'the cluster was restored', role: 'admin' },
    ]);
    for (const reason of ['', '  ', null, 'x'.repeat(1001)]) {
      expect(await refusal(database.query("select kilit.reset('reset/a', '7', $1)", [reason], 'admin'))).toMatchObject({
        code: 'KL002',
        message: 'invalid reason: say in 1 to 1000 characters why',
      });
    }
    expect(await markOf(database, 'reset/a')).toBe('101');
  });

  test('observe lets pass, counts and notes what enforce refuses', async () => {
    await enter('shop/t', '10', 'insert into t values (1)');
    await database.query("select kilit.set_mode('shop/t', 'observe', 'try it')", [], 'admin');
    await database.query('insert into t values (2), (3)', [], 'app');
    await enter('shop/t', '9', 'insert into t values (4)', 'insert into t values (5)');
    await enter('shop/t', 'nonsense', 'insert into t values (6)');
    await enter('shop/t', '999999999999999999', 'insert into t values (7)');
    await enter('shop/t', '11', 'insert into t values (8)');
    expect(await database.query('select count(*) from shop.t')).toEqual([{ count: '8' }]);
    expect(
      await database.query(
        "select token, mode, refused, observed from kilit.marks where resource = 'shop/t'",
        [],
        'app',
      ),
    ).toEqual([{ token: '11', mode: 'observe', refused: '0', observed: '4' }]);
    expect(
      await database.query(
        "select kind, token, mark, table_name, role from kilit.refusals where resource = 'shop/t' order by at",
        [],
        'app',
      ),
    ).toEqual([
      { kind: 'observed-not-entered', token: null, mark: '10', table_name: 'shop.t', role: 'app' },
      { kind: 'observed-stale', token: '9', mark: '10', table_name: null, role: 'app' },
      { kind: 'observed-invalid', token: 'nonsense', mark: '10', table_name: null, role: 'app' },
      { kind: 'observed-jump', token: '999999999999999999', mark: '10', table_name: null, role: 'app' },
    ]);
    const warned = await database.psql('insert into shop.t values (9);', 'app');
    expect(warned.stderr).toContain(
      "WARNING:  kilit would refuse this write for 'shop/t' (observed-not-entered): token none, the newest seen is 11",
    );
    await database.query("select kilit.set_mode('shop/t', 'enforce')", [], 'admin');
    expect(await refusal(database.query('insert into t values (10)', [], 'app'))).toMatchObject({ code: 'KL004' });
    expect(await refusal(enter('shop/t', '9'))).toMatchObject({ code: 'KL001' });
    expect(await refusal(database.query("select kilit.set_mode('shop/t', 'off')", [], 'admin'))).toMatchObject({
      code: 'KL002',
    });
  });

  test('observe makes nobody wait for an open transaction', async () => {
    await database.query("select kilit.set_mode('observe/a', 'observe')", [], 'admin');
    const old = await database.connect('app');
    await old.query('begin');
    await old.query("select kilit.enter('observe/a', '5')");
    await enter('observe/a', '6');
    expect(await database.query("select kilit.seal('observe/a', '7') as ended", [], 'app')).toEqual([{ ended: 0 }]);
    await old.query('commit');
    await old.end();
  });

  test('notes a refusal that a client reports, and nothing that is not one', async () => {
    await enter('report/a', '10');
    for (const token of ['9', '10', '11', 'x', '']) {
      await database.query('select kilit.report_refusal($1, $2)', ['report/a', token], 'app');
    }
    await database.query("select kilit.report_refusal('report/unknown', '1')", [], 'app');
    expect(
      await database.query(
        "select resource, kind, token, mark from kilit.refusals where resource like 'report/%'",
        [],
        'app',
      ),
    ).toEqual([{ resource: 'report/a', kind: 'stale', token: '9', mark: '10' }]);
  });

  test('keeps the newest 10,000 refusals', async () => {
    await enter('many/a', '10');
    await database.query("select kilit.report_refusal('many/a', '9') from generate_series(1, 10500)", [], 'app');
    const [row] = await database.query<{ count: number }>('select count(*)::int as count from kilit.refusals');
    expect(row?.count).toBe(10_000);
  });

  test('installs again without losing marks, and uninstalls so that writes pass', async () => {
    const fresh = await sharedServer(version).createDatabase();
    await fresh.query("create table shop.t (v int); select kilit.protect('shop.t', 'shop/t')", undefined, 'owner');
    await fresh.query("select kilit.seal('shop/t', '42')", [], 'app');
    await fresh.query(guardSql());
    expect(await markOf(fresh, 'shop/t')).toBe('42');
    expect(await refusal(fresh.query('insert into t values (1)', [], 'app'))).toMatchObject({ code: 'KL004' });
    await fresh.query(uninstallSql());
    await fresh.query('insert into t values (1)', [], 'app');
    expect(await fresh.query("select count(*)::int as n from pg_namespace where nspname = 'kilit'")).toEqual([
      { n: 0 },
    ]);
    await fresh[Symbol.asyncDispose]();
  });
});
