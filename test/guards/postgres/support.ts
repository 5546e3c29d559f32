/** What a refused statement answers, and sessions that wait, for the guard's tests. */
import type { Client } from 'pg';
import { LockError } from '../../../src/guards/postgres/index.ts';
import type { Database } from '../../support/postgres/index.ts';

export interface Refusal {
  readonly code: string;
  readonly message: string;
  readonly detail: string | undefined;
  readonly hint: string | undefined;
}

/** The error of a statement that must fail. */
export async function refusal(statement: Promise<unknown>): Promise<Refusal> {
  try {
    await statement;
  } catch (error) {
    const { code, message, detail, hint } = error as Refusal;
    return { code, message, detail, hint };
  }
  throw new Error('The statement was not refused.');
}

/** One transaction that enters first; the statements' own results are dropped. */
export async function enterAnd(
  client: Client,
  resource: string,
  token: string,
  ...statements: string[]
): Promise<void> {
  await client.query('begin');
  try {
    await client.query('select kilit.enter($1::text, $2::text)', [resource, token]);
    for (const statement of statements) await client.query(statement);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => {});
    throw error;
  }
}

export async function markOf(database: Database, resource: string): Promise<string | undefined> {
  const [row] = await database.query('select token from kilit.marks where resource = $1', [resource]);
  return row?.token as string | undefined;
}

/** Resolves when a backend of the database waits for a lock: then the other side may go on. */
export async function someoneWaits(database: Database): Promise<void> {
  for (let attempt = 0; attempt < 1000; attempt += 1) {
    const rows = await database.query(
      "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    );
    if (rows.length > 0) return;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('No backend has waited for a lock within 10 s.');
}

export async function pidOf(client: Client): Promise<number> {
  const { rows } = await client.query('select pg_backend_pid() as pid');
  return rows[0].pid as number;
}

/** The `LockError` of a call that must fail with one. */
export async function lockError(promise: Promise<unknown>): Promise<LockError> {
  const error = await promise.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(error instanceof LockError)) throw new Error('No LockError was thrown.', { cause: error });
  return error;
}
