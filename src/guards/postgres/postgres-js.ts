/** The driver `postgres` (Postgres.js), by structure. */
import { type Driver, ENTER, type Entry, type Query, type Row } from './driver.ts';
import { createGuard, type GuardOptions, type PostgresGuard } from './guard.ts';
import { endedBefore } from './pg.ts';
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

function postgresJsDriver<Tx extends PostgresJsTransaction>(sql: PostgresJs<Tx>): Driver<Tx> {
  return {
    query: queryOn(sql),
    transaction: <T>({ isolation, resource, token }: Entry, work: (tx: Tx) => Promise<T>): Promise<T> =>
      begin(sql, isolation, async (tx) => {
        await queryOn(tx)(ENTER, [resource, token]);
        const result = await work(tx);
        // The driver does not look at what COMMIT answers; a savepoint fails without a transaction, and in an aborted one.
        await tx.unsafe('savepoint kilit_end').then(undefined, (error: unknown) => {
          throw endedBefore(error) ?? error;
        });
        return result;
      }),
  };
}

const queryOn =
  (sql: PostgresJsTransaction): Query =>
  async (text, values) =>
    (await sql.unsafe(text, values.map(String))) as readonly Row[];
