/** The examples as a user runs them: accepted with the newest token, refused with an older one. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { repositoryRoot } from '../../../tools/cluster/paths.ts';
import { type Database, sharedServer } from '../../support/postgres/index.ts';

let database: Database;
beforeAll(async () => {
  database = await sharedServer().createDatabase();
  await database.query(
    "create table shop.charge (customer int, cents int, token bigint default kilit.entered('shop/billing')); select kilit.protect('shop.charge', 'shop/billing')",
    undefined,
    'owner',
  );
});
afterAll(() => database[Symbol.asyncDispose]());

interface Ended {
  readonly code: number;
  readonly stderr: string;
}

function run(example: string, token: string): Promise<Ended> {
  const url = new URL(database.url('app'));
  const env = {
    ...process.env,
    PGHOST: url.hostname,
    PGPORT: url.port,
    PGUSER: url.username,
    PGDATABASE: database.name,
    FENCING_TOKEN: token,
  };
  const file = join(repositoryRoot, 'examples/postgres', `${example}.ts`);
  return new Promise((resolve) => {
    execFile(process.execPath, ['--conditions=source', file], { env }, (error, _stdout, stderr) =>
      resolve({ code: error === null ? 0 : Number(error.code), stderr }),
    );
  });
}

describe.each(['pg', 'postgres-js', 'kysely', 'drizzle'])('the example %s', (example) => {
  const base = { pg: 10, 'postgres-js': 20, kysely: 30, drizzle: 40 }[example] ?? 0;
  test('writes with the newest token, and is refused with an older one', async () => {
    expect(await run(example, String(base + 1))).toEqual({ code: 0, stderr: '' });
    const stale = await run(example, String(base));
    expect(stale.code).toBe(1);
    expect(stale.stderr).toContain(
      `[StaleToken] Write refused: token ${base} is older than ${base + 1}, the newest seen for 'shop/billing'.`,
    );
    expect(await database.query('select customer, cents, token from shop.charge where token >= $1', [base])).toEqual([
      { customer: 1, cents: 990, token: String(base + 1) },
    ]);
  });
});
