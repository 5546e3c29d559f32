/** What the guard needs of a database driver. */

export type Row = Readonly<Record<string, unknown>>;
export type Query = (text: string, values: readonly unknown[]) => Promise<readonly Row[]>;

export interface Driver<Tx> {
  /** One statement in a transaction of its own. */
  readonly query: Query;
  /**
   * Begins, enters, works, and commits; rolls back and rethrows when entering or `work` fails.
   *
   * Must fail when what `work` did is not committed by that COMMIT: after an error that `work` swallowed, and when `work`
   * ended the transaction itself (unless it began another).
   */
  transaction<T>(entry: Entry, work: (tx: Tx) => Promise<T>): Promise<T>;
}

/** What a transaction of the guard begins with. */
export interface Entry {
  readonly isolation: string;
  readonly resource: string;
  /** Decimal text. */
  readonly token: string;
}

export const ENTER = 'select kilit.enter($1::text, $2::text)';
