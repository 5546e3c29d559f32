/** What a resource keeps: the writes that it accepted, in order. */
export interface Row {
  readonly at: number;
  readonly token: bigint;
  /** The life of a Pod in which the writer ran: between two runs of its init phase. */
  readonly life: string;
}

/** Two histories of one lock: one whose guard refuses old tokens, one that takes everything. */
export class History {
  readonly guarded: Row[] = [];
  readonly unguarded: Row[] = [];
  #mark = 0n;
  refused = 0;

  write(row: Row): void {
    this.unguarded.push(row);
    if (row.token < this.#mark) {
      this.refused += 1;
      return;
    }
    this.#mark = row.token;
    this.guarded.push(row);
  }
}
