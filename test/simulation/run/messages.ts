/** What the main thread asks of a worker, and what it hears. */
export interface WorkerSettings {
  readonly mutation: string | undefined;
}

export type Order =
  | {
      readonly kind: 'run';
      readonly from: number;
      readonly count: number;
      readonly stopsAtFailure: boolean;
      readonly shrinks: boolean;
    }
  | { readonly kind: 'stop' };

export interface Failure {
  readonly seed: number;
  readonly invariant: string;
  readonly text: string;
  readonly atMs: number;
  readonly replay: string;
  readonly faults: readonly string[];
  /** The last lines of the shrunk run. */
  readonly trace: readonly string[];
}

export interface Report {
  readonly from: number;
  readonly runs: number;
  readonly events: number;
  readonly grants: number;
  readonly refused: number;
  readonly failures: readonly Failure[];
}
