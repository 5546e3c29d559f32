/** What the guard needs of a database driver. */

export type Row = Readonly<Record<string, unknown>>;
export type Query = (text: string, values: readonly unknown[]) => Promise<readonly Row[]>;

export interface Driver<Tx> {
  /** One statement in a transaction of its own. */
  readonly query: Query;
  /**
   * Begins, works, and commits; rolls back and rethrows when `work` fails.
   *
   * Must fail when the server answers COMMIT with a rollback, since `work` may have swallowed a statement's error.
   */
  transaction<T>(isolation: string, work: (tx: Tx, query: Query) => Promise<T>): Promise<T>;
}
