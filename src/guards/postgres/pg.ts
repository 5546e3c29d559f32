/** The driver `pg` (node-postgres), by structure. */
import { LockError } from '../../core/lock-error.ts';
import type { Driver, Entry, Query, Row } from './driver.ts';
import { endsSession, serverError } from './errors.ts';
import { createGuard, type GuardOptions, type PostgresGuard } from './guard.ts';

/** The part of `pg.PoolClient` that the guard uses. */
export interface PgClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: unknown[] }>;
  release(error?: Error | boolean): void;
  on?(event: 'error', listener: (error: Error) => void): unknown;
  removeListener?(event: 'error', listener: (error: Error) => void): unknown;
}

/** The part of `pg.Pool` that the guard uses. */
export interface PgPool {
  connect(): Promise<PgClient>;
}

/** The pool's own type of client; `pg.Pool` overloads `connect` with a callback, which hides it from plain inference. */
export type ClientOf<Pool extends PgPool> = Pool extends {
  connect: { (): Promise<infer Client extends PgClient>; (callback: never): void };
}
  ? Client
  : Awaited<ReturnType<Pool['connect']>>;

/**
 * A guard over a pool of `pg`.
 *
 * ```ts
 * const guard = postgresGuard(new pg.Pool(), { resource: 'shop/billing' });
 * await guard.seal(token);
 * await guard.transaction(token, async (client) => { await client.query('insert into charge …'); });
 * ```
 *
 * @throws LockError `InvalidConfig` for a wrong resource
 */
export function postgresGuard<Pool extends PgPool>(pool: Pool, options: GuardOptions): PostgresGuard<ClientOf<Pool>> {
  return createGuard(pgDriver(pool as unknown as { connect(): Promise<ClientOf<Pool>> }), options);
}

function pgDriver<Client extends PgClient>(pool: { connect(): Promise<Client> }): Driver<Client> {
  return {
    async query(text, values) {
      const client = await pool.connect();
      client.on?.('error', ignore);
      let broken: Error | undefined;
      try {
        return await queryOn(client)(text, values);
      } catch (error) {
        broken = connectionError(error);
        throw error;
      } finally {
        client.removeListener?.('error', ignore);
        client.release(broken);
      }
    },
    async transaction(entry, work) {
      const client = await pool.connect();
      client.on?.('error', ignore);
      let broken: Error | undefined;
      try {
        await enter(client, entry);
        const result = await work(client);
        await commit(client);
        return result;
      } catch (error) {
        // A connection whose transaction cannot be ended must not go back to the pool.
        broken = await client.query('rollback').then(
          () => undefined,
          (failure: Error) => failure,
        );
        throw error;
      } finally {
        client.removeListener?.('error', ignore);
        client.release(broken);
      }
    },
  };
}

/**
 * Begins and enters in one message, which saves a round trip; a message of several statements can have no parameters.
 *
 * `fresh`: this message has begun the transaction; else the pool handed out a connection inside another one.
 */
async function enter(client: PgClient, { isolation, resource, token }: Entry): Promise<void> {
  const begin = `begin isolation level ${isolation}; select statement_timestamp() = transaction_timestamp() as fresh`;
  const text = `${begin}, kilit.enter(${literal(resource)}, ${literal(token)})`;
  const answer = await client.query(text).catch((error: unknown) => {
    throw IN_A_TRANSACTION.has(serverError(error)?.code ?? '') ? leftOpen() : error;
  });
  const rows = (Array.isArray(answer) ? answer : [answer]).flatMap((part: { readonly rows: unknown[] }) => part.rows);
  if ((rows[0] as { readonly fresh?: unknown } | undefined)?.fresh === false) throw leftOpen();
}

/** The savepoint fails where there is no transaction to commit, without a round trip more. */
async function commit(client: PgClient): Promise<void> {
  try {
    await client.query('savepoint kilit_end; commit');
  } catch (error) {
    throw endedBefore(error) ?? error;
  }
}

/** A string constant of ASCII letters that means the same whatever the encodings of session and database, and `standard_conforming_strings`. */
const literal = (text: string): string =>
  /^[ !#-&(-[\]-~]*$/.test(text)
    ? `'${text}'`
    : `pg_catalog.convert_from(pg_catalog.decode('${Buffer.from(text).toString('hex')}', 'hex'), 'UTF8')`;

/**
 * A client in use whose session is ended, as a newer holder's seal does, emits `error`, which without a listener ends the
 * process. Its next query fails anyway.
 */
const ignore = (): void => {};

const queryOn =
  (client: PgClient): Query =>
  async (text, values) =>
    (await client.query(text, [...values])).rows as Row[];

/** The error of a statement after which the connection is of no more use; an ordinary answer of the server leaves it usable. */
function connectionError(error: unknown): Error | undefined {
  const answer = serverError(error);
  return error instanceof Error && (answer === undefined || endsSession(answer)) ? error : undefined;
}

const IN_FAILED_TRANSACTION = '25P02';
const NO_TRANSACTION = '25P01';

/** What the error of a statement at the end of the work says of its transaction. */
export function endedBefore(error: unknown): LockError | undefined {
  switch (serverError(error)?.code ?? '') {
    case IN_FAILED_TRANSACTION:
      return new LockError(
        'Conflict',
        'Nothing was committed: a statement of this transaction had failed, and its error was caught. Let it reach guard.transaction, or use a savepoint.',
      );
    case NO_TRANSACTION:
      return new LockError(
        'Conflict',
        'The work ended the transaction itself, by COMMIT or ROLLBACK; what it wrote after that was not guarded. Let guard.transaction commit; throw to roll back.',
      );
    default:
      return undefined;
  }
}

/** In a transaction that has failed; in one that has begun to read at another isolation level. */
const IN_A_TRANSACTION: ReadonlySet<string> = new Set([IN_FAILED_TRANSACTION, '25001']);

const leftOpen = (): LockError =>
  new LockError(
    'Conflict',
    'The pool handed out a connection inside a transaction that somebody else had begun. Nothing was written, and that transaction is rolled back. Whoever uses this pool must end what it begins before it releases the connection.',
  );
