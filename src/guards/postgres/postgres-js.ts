/** The driver `postgres` (Postgres.js), by structure. */
import { type Driver, ENTER, type Entry, type Query, type Row } from './driver.ts';
import { serverError } from './errors.ts';
import { createGuard, type GuardOptions, type PostgresGuard } from './guard.ts';
import { swallowed } from './pg.ts';
import { begin } from './postgres-js-begin.ts';

/** The part of a transaction of `postgres` that the guard uses. */
export interface PostgresJsTransaction {
  unsafe(text: string, values?: string[]): PromiseLike<readonly unknown[]>;
}

/** The part of `postgres()` that the guard uses. */
export interface PostgresJs<Tx extends PostgresJsTransaction> extends PostgresJsTransaction {
  begin(options: string, work: (tx: Tx) => Promise<unknown>): Promise<unknown>;
}

/**
 * A guard over `postgres`.
 *
 * ```ts
 * const guard = postgresJsGuard(postgres(), { resource: 'shop/billing' });
 * await guard.transaction(token, async (sql) => { await sql`insert into charge …`; });
 * ```
 *
 * Limits: after a session was ended the driver (3.4.9) fails one more transaction with that session's error, `57P01`.
 *
 * @throws LockError `InvalidConfig` for a wrong resource
 */
export function postgresJsGuard<Tx extends PostgresJsTransaction>(
  sql: PostgresJs<Tx>,
  options: GuardOptions,
): PostgresGuard<Tx> {
  return createGuard(postgresJsDriver(sql), options);
}

const IN_FAILED_TRANSACTION = '25P02';

function postgresJsDriver<Tx extends PostgresJsTransaction>(sql: PostgresJs<Tx>): Driver<Tx> {
  return {
    query: queryOn(sql),
    transaction: <T>({ isolation, resource, token }: Entry, work: (tx: Tx) => Promise<T>): Promise<T> =>
      begin(sql, isolation, async (tx) => {
        await queryOn(tx)(ENTER, [resource, token]);
        const result = await work(tx);
        // The driver does not look at what COMMIT answers; a statement in an aborted transaction fails.
        await tx.unsafe('select 1').then(undefined, (error: unknown) => {
          throw serverError(error)?.code === IN_FAILED_TRANSACTION ? swallowed() : error;
        });
        return result;
      }),
  };
}

const queryOn =
  (sql: PostgresJsTransaction): Query =>
  async (text, values) =>
    (await sql.unsafe(text, values.map(String))) as readonly Row[];
