/** Which tokens pass, exactly. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, SERVER_VERSIONS, sharedServer } from '../../support/postgres/index.ts';
import { markOf, refusal } from './support.ts';

describe.each(SERVER_VERSIONS)('tokens on PostgreSQL %i', (version) => {
  let database: Database;
  beforeAll(async () => {
    database = await sharedServer(version).createDatabase();
  });
  afterAll(() => database[Symbol.asyncDispose]());

  const enter = (resource: string, token: unknown) =>
    database.query('select kilit.enter($1::text, $2::text) as token', [resource, token], 'app');
  const stale = (resource: string, token: string, mark: string) => ({
    code: 'KL001',
    message: `stale fencing token ${token} for '${resource}': the newest seen is ${mark}`,
    detail: JSON.stringify({ resource, token, mark }).replaceAll('":"', '" : "').replaceAll('","', '", "'),
    hint: 'A newer holder of the lock has written or sealed. This process is no longer the holder; let it exit. If every holder is refused, the revisions of the cluster went back (a restore of etcd): raise its token base.',
  });

  test.each([
    ['9', '10'],
    ['99', '100'],
    ['9007199254740992', '9007199254740993'],
    ['999999999999999998', '999999999999999999'],
  ])('compares as numbers: after %s comes %s, and %s is stale then', async (older, newer) => {
    const resource = `numbers/${newer}`;
    await database.query('select kilit.reset($1, $2::text, $3)', [resource, older, 'a mark to start from'], 'admin');
    expect(await enter(resource, older)).toEqual([{ token: older }]);
    expect(await enter(resource, newer)).toEqual([{ token: newer }]);
    expect(await enter(resource, newer)).toEqual([{ token: newer }]);
    expect(await refusal(enter(resource, older))).toEqual(stale(resource, older, newer));
    expect(await markOf(database, resource)).toBe(newer);
  });

  test('takes a token also as a 64-bit integer', async () => {
    expect(await database.query("select kilit.enter('integer/a', 4711) as token", [], 'app')).toEqual([
      { token: '4711' },
    ]);
    expect(await database.query("select kilit.seal('integer/a', 4712::bigint) as ended", [], 'app')).toEqual([
      { ended: 0 },
    ]);
    expect(await markOf(database, 'integer/a')).toBe('4712');
  });

  test.each([
    '',
    '0',
    '007',
    '+5',
    ' 5',
    '5 ',
    '1e3',
    '-1',
    '5.0',
    '0x10',
    '٥',
    '1000000000000000000',
    '9'.repeat(400),
    'null',
    null,
  ])('refuses %j and changes nothing', async (token) => {
    const shown = token === null ? 'null' : `'${token.slice(0, 80)}'`;
    const wanted = {
      code: 'KL002',
      message: `invalid fencing token ${shown} for 'invalid/a': it must be a decimal integer from 1 to 999999999999999999`,
      detail: undefined,
      hint: 'Pass FENCING_TOKEN as it is, as text or as a 64-bit integer. Without one the program does not hold the lock.',
    };
    expect(await refusal(enter('invalid/a', token))).toEqual(wanted);
    expect(await refusal(database.query('select kilit.seal($1::text, $2::text)', ['invalid/a', token], 'app'))).toEqual(
      wanted,
    );
    expect(
      await refusal(database.query('select kilit.reset($1::text, $2::text, $3)', ['invalid/a', token, 'try'], 'admin')),
    ).toEqual(wanted);
    expect(await markOf(database, 'invalid/a')).toBeUndefined();
  });

  test.each([
    ['', "''"],
    ['x'.repeat(318), `'${'x'.repeat(80)}'`],
    ['a\nb', "'a\nb'"],
    [null, 'null'],
  ])('refuses the resource %j', async (resource, shown) => {
    const { code, message } = await refusal(
      database.query('select kilit.enter($1::text, $2::text)', [resource, '5'], 'app'),
    );
    expect({ code, message }).toEqual({
      code: 'KL002',
      message: `invalid resource ${shown}: it must have 1 to 317 characters and no control characters`,
    });
  });

  test('lets a mark grow by 10^15 at once and not by one more', async () => {
    expect(await enter('jump/a', '1000000000000000')).toEqual([{ token: '1000000000000000' }]);
    expect(await enter('jump/a', '2000000000000000')).toEqual([{ token: '2000000000000000' }]);
    for (const raise of ['enter', 'seal']) {
      expect(
        await refusal(database.query(`select kilit.${raise}('jump/a', '3000000000000001')`, [], 'app')),
      ).toMatchObject({
        code: 'KL003',
        message:
          "fencing token 3000000000000001 for 'jump/a' jumps more than 10^15 above the newest seen, 2000000000000000",
      });
    }
    expect(await markOf(database, 'jump/a')).toBe('2000000000000000');
    expect(await refusal(enter('jump/b', '9007199254740993'))).toMatchObject({ code: 'KL003' });
    expect(await markOf(database, 'jump/b')).toBeUndefined();
  });

  test('counts each refusal although its transaction is rolled back', async () => {
    await enter('count/a', '10');
    for (const token of ['9', '8', '7']) await refusal(enter('count/a', token));
    await refusal(database.query("select kilit.seal('count/a', '9')", [], 'app'));
    const [row] = await database.query("select refused from kilit.marks where resource = 'count/a'");
    expect(row).toEqual({ refused: '4' });
  });
});
