/** The driver `pg` (node-postgres), by structure. */
import { LockError } from '../../core/lock-error.ts';
import type { Driver, Entry, Query, Row } from './driver.ts';
import { endsSession, serverError } from './errors.ts';
import { createGuard, type GuardOptions, type PostgresGuard } from './guard.ts';

/** The part of `pg.PoolClient` that the guard uses. */
export interface PgClient {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: unknown[]; readonly command?: string }>;
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
        await client.query(beginAndEnter(entry));
        const result = await work(client);
        const { command } = await client.query('commit');
        if (command === 'ROLLBACK') throw swallowed();
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

/** Both in one message, which saves a round trip; a message of two statements can have no parameters. */
const beginAndEnter = ({ isolation, resource, token }: Entry): string =>
  `begin isolation level ${isolation}; select kilit.enter(${literal(resource)}, ${literal(token)})`;

/** A string constant of ASCII letters that means the same whatever the session set as encoding or `standard_conforming_strings`. */
const literal = (text: string): string =>
  `E'${text.replaceAll(/[^ -~]|['\\]/gu, (character) => `\\U${character.codePointAt(0)?.toString(16).padStart(8, '0')}`)}'`;

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

export const swallowed = (): LockError =>
  new LockError(
    'Conflict',
    'Nothing was committed: a statement of this transaction had failed, and its error was caught. Let it reach guard.transaction, or use a savepoint.',
  );
