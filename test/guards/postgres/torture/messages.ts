/** What the driver tells a writer process, and what it answers. */

export interface WriterSettings {
  readonly url: string;
  readonly resource: string;
  readonly connections: number;
  readonly guarded: boolean;
  /** Chance that a transaction stops the whole process (SIGSTOP) between enter and write, or between write and commit. */
  readonly freezeChance: number;
  readonly seed: number;
}

/** A grant: write with this token from now on; nobody says when it has passed on. */
export interface Grant {
  readonly token: string;
  /** False: the first transaction raises the mark. */
  readonly seal: boolean;
}

export type ToWriter = { readonly kind: 'grant'; readonly grant: Grant } | { readonly kind: 'stop' };

export type FromWriter =
  | { readonly kind: 'ready' }
  | { readonly kind: 'freezing'; readonly point: FreezePoint }
  | { readonly kind: 'sealed'; readonly ms: number; readonly ended: number }
  | { readonly kind: 'report'; readonly report: Report };

export type FreezePoint = 'before-write' | 'before-commit';

export interface Report {
  readonly committed: number;
  /** Refused with KL001. */
  readonly refused: number;
  /** Sessions that a newer holder's seal ended. */
  readonly ended: number;
  /** Any other error: none is expected. */
  readonly unexpected: readonly string[];
}

/** How long a seal waits for open transactions of older holders. */
export const SEAL_WAIT_MS = 300;
