/** Something happened that must never happen. */
export interface Violation {
  /** The invariant as docs/spec.md names it. */
  readonly invariant: string;
  readonly atMs: number;
  readonly text: string;
}
