/**
 * Transactions of `postgres` that send nothing more once their connection is lost.
 *
 * The driver itself (3.4.9) goes on. It sends ROLLBACK into the closed socket, which ends the process by an error that
 * nobody can catch (porsager/postgres#1133). And it connects again for the next transaction with the same object: what the
 * work of the lost one still sends, and its COMMIT, then run inside that next one (#1216). kilit.seal ends the sessions
 * of frozen holders, so a guard would meet both.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PostgresJs, PostgresJsTransaction } from './postgres-js.ts';

/** One transaction's connection: while it is there, and since the error that took it. */
interface Connection {
  lost: { readonly error: unknown } | undefined;
  readonly lose: (error: unknown) => void;
}

/** As `sql.begin`. */
export function begin<Tx extends PostgresJsTransaction, T>(
  sql: PostgresJs<Tx>,
  isolation: string,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const connection: Connection = {
      lost: undefined,
      lose: (error) => {
        connection.lost ??= { error };
        reject(error);
      },
    };
    // The driver waits for all promises of an array that the callback returns: hence the box.
    const boxed = async (tx: Tx): Promise<{ readonly result: T }> => ({ result: await work(limited(tx, connection)) });
    // It rejects as soon as the connection is closed, also while the work is elsewhere.
    sql
      .begin(`isolation level ${isolation}`, (tx) => whileConnected(connection, () => boxed(tx)))
      .then((box) => resolve((box as { readonly result: T }).result), connection.lose);
  });
}

/** Settles as the work does, upon which the driver ends the transaction; never once the connection is lost. */
function whileConnected<T>(connection: Connection, work: () => Promise<T>): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const settle = async (): Promise<void> => {
      try {
        const result = await work();
        if (connection.lost === undefined) resolve(result);
      } catch (error) {
        // The driver fails the statement of a closed connection a little sooner than the transaction.
        await nextTurn();
        if (connection.lost === undefined) reject(error);
      }
    };
    void settle();
  });
}

/** The driver's own transaction, but nothing is sent once the connection is lost. */
function limited<Tx extends PostgresJsTransaction>(tx: Tx, connection: Connection): Tx {
  const connected =
    (call: Call): Call =>
    (...args) => {
      if (connection.lost !== undefined) throw connection.lost.error;
      return call(...args);
    };
  return new Proxy(tx, {
    apply: (target, _this, args) => connected(target as unknown as Call)(...args),
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      switch (key) {
        case 'unsafe':
        case 'file':
          return connected(value as Call);
        case 'savepoint':
          return connected((...args) => (value as Call)(...args.map((arg) => savepointWork(arg, connection))));
        default:
          return value;
      }
    },
  });
}

type Call = (...args: readonly unknown[]) => unknown;

/** The callback among the arguments of `savepoint(name?, work)`; the name stays as it is. */
const savepointWork = (argument: unknown, connection: Connection): unknown =>
  typeof argument === 'function'
    ? (tx: PostgresJsTransaction) => whileConnected(connection, async () => (argument as Call)(limited(tx, connection)))
    : argument;
