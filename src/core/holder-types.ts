import type { Grant, ObservedLease } from './holder-lease.ts';
import type { Instant } from './lease.ts';
import type { FencingToken } from './token.ts';

/** `gate`: the program starts at the grant and is stopped at the loss. `standby`: it runs always, and is told. */
export type Mode = 'gate' | 'standby';

/** Why a grant, or the sidecar, ended. The same string stands in the file `reason`, the event, the log and the API. */
export const LossReason = {
  /** No renewal that was sent within 0.9 of the lease duration got a good reply. */
  DeadlinePassed: 'DeadlinePassed',
  /** The Lease names another holder, or none. */
  HolderChanged: 'HolderChanged',
  /** The Lease names this Pod, but with another token or acquireTime: that is another grant. */
  GrantChanged: 'GrantChanged',
  /** The Lease is gone or on its way out: the lock was deleted. */
  LeaseDeleted: 'LeaseDeleted',
  /** The operator asks this Pod to hand the lock over: a rolling update, a drain, an administrator. */
  YieldAsked: 'YieldAsked',
  /** The sidecar got SIGTERM. */
  Terminated: 'Terminated',
  /** The token could not be written for the program. */
  FilesFailed: 'FilesFailed',
  /** The sidecar met an error that it does not know. */
  Crashed: 'Crashed',
  /** The sidecar was restarted without its Pod: the programs of its earlier life may be alive. */
  RestartedAlone: 'RestartedAlone',
} as const;
export type LossReason = (typeof LossReason)[keyof typeof LossReason];

/** What this process knows about the Lease. */
export interface Seen {
  readonly at: Instant;
  /** The newest revision seen; kept when the Lease is found missing. */
  readonly revision: bigint;
  /** `undefined`: there is no Lease. */
  readonly lease: ObservedLease | undefined;
}

/** Where the one write of the present state stands. There is never more than one that counts. */
export type Attempt =
  | { readonly kind: 'resting'; readonly until: Instant; readonly failures: number }
  | { readonly kind: 'writing'; readonly id: number; readonly sentAt: Instant; readonly failures: number }
  /** The last write was refused; the next one waits for what a read shows. */
  | { readonly kind: 'reading'; readonly failures: number };

interface Base {
  readonly identity: string;
  readonly mode: Mode;
  readonly seen: Seen | undefined;
  /** Writes so far: the id of the last one. */
  readonly writes: number;
}

/** A grant under which a program may be alive. */
interface Tenure extends Base {
  readonly grant: Grant;
  /** When the last renewal (or the confirmation) that got a good reply was *sent*. */
  readonly renewedAt: Instant;
  /** `renewedAt` + 0.9 × lease duration. */
  readonly deadline: Instant;
  readonly heldSince: Instant;
}

/**
 * ```
 *   starting ──▶ waiting ◀──────────────── releasing ◀─┐ yielded, stood down (standby)
 *                  │  ▲ passed on              ▲       │
 *                  ▼  │                        │       │
 *               confirming ──▶ opening ──▶ holding ──▶ losing (standby)
 *                                 │           ▲ ▼          │
 *                                 │        unrenewed       │   (ContinueFenced)
 *                                 └────────────┴──────────┴──▶ lost: files removed, exit non-zero
 * ```
 */
export type HolderState =
  /** It is not known yet whether the programs of an earlier life are dead. */
  | (Base & { readonly kind: 'starting' })
  /** Not the holder. */
  | (Base & { readonly kind: 'waiting' })
  /** Granted, and not yet confirmed: no program has seen the token, so a loss here is no loss. */
  | (Base & { readonly kind: 'confirming'; readonly grant: Grant; readonly attempt: Attempt })
  /** Confirmed; the files are being written. A program may start at any moment. */
  | (Tenure & { readonly kind: 'opening' })
  | (Tenure & { readonly kind: 'holding'; readonly attempt: Attempt })
  /**
   * By `onRenewalFailure: ContinueFenced`: past the deadline, and the program goes on behind its guard. Somebody else may
   * hold the lock by now. It ends when the Lease is seen to record this grant no more, and becomes `holding` again when a
   * renewal succeeds: a write that finds this very grant proves that there was no other in between.
   */
  | (Tenure & { readonly kind: 'unrenewed'; readonly attempt: Attempt; readonly since: Instant })
  /** Standby only: the program was told to stop, and is restarted at `stopAt` unless it says that it did. */
  | (Tenure & { readonly kind: 'losing'; readonly reason: LossReason; readonly stopAt: Instant })
  /** No program of this grant is alive: it is given back. */
  | (Base & {
      readonly kind: 'releasing';
      readonly grant: Grant;
      readonly attempt: Attempt;
      /** `exit`: because the files could not be written. */
      readonly next: 'wait' | 'exit';
    })
  /** The end of this process. */
  | (Base & { readonly kind: 'lost'; readonly reason: LossReason; readonly token: FencingToken | undefined });

/** What a read or a watch showed. A reply to a write brings the same, inside `wrote`. */
export interface Observation {
  readonly lease: ObservedLease | undefined;
  /** `undefined` only when a read found no Lease. */
  readonly revision: bigint | undefined;
  /** When the read was sent; `undefined`: a watch brought it, at its own pace. */
  readonly requestedAt: Instant | undefined;
}

export type WriteResult =
  | { readonly kind: 'ok'; readonly lease: ObservedLease }
  /** HTTP 409: the Lease has changed. */
  | { readonly kind: 'conflict' }
  /** Any other answer that says no: forbidden, not found, refused by a policy. */
  | { readonly kind: 'refused' }
  /** No connection, an overloaded server, an unreadable reply. Whether it was written is unknown. */
  | { readonly kind: 'failed' }
  /** No reply within the request's time. Whether it was or will be written is unknown. */
  | { readonly kind: 'timedOut' };

/** Every event carries the time, and a number in [0, 1) that spreads retries. */
export type HolderEvent = { readonly now: Instant; readonly jitter: number } & (
  | { readonly kind: 'started'; readonly epoch: 'fresh' | 'absent' }
  | { readonly kind: 'observed'; readonly observation: Observation }
  | { readonly kind: 'readFailed' }
  | { readonly kind: 'wrote'; readonly id: number; readonly result: WriteResult }
  | { readonly kind: 'filesWritten' }
  | { readonly kind: 'filesFailed' }
  | { readonly kind: 'tick' }
  | { readonly kind: 'terminated' }
  | { readonly kind: 'releaseAsked' }
  | { readonly kind: 'stoodDown' }
  | { readonly kind: 'crashed' }
);

export type WritePurpose = 'confirm' | 'renew' | 'release';

/** Run in order. When one fails, the rest is not run and the process crashes: files removed, exit non-zero. */
export type Effect =
  /** Sends `lease` back with a new renewTime, or without a holder. Answered by one `wrote` within `timeoutMs`. */
  | {
      readonly kind: 'write';
      readonly purpose: WritePurpose;
      readonly id: number;
      readonly lease: ObservedLease;
      readonly timeoutMs: number;
    }
  /** Reads the Lease. Answered by `observed` or `readFailed`. */
  | { readonly kind: 'read'; readonly timeoutMs: number }
  /** Writes the token, then the env file. Answered by `filesWritten` or `filesFailed`. */
  | { readonly kind: 'writeFiles'; readonly token: FencingToken }
  | { readonly kind: 'removeFiles' }
  | { readonly kind: 'openGate' }
  /** Tells those who watch the socket what the state is now. */
  | { readonly kind: 'tell' }
  /** Tells people, by an event and a metric, that renewals fail past the deadline, or work again. Best effort. */
  | {
      readonly kind: 'note';
      readonly reason: 'Unrenewed' | 'Renewed';
      readonly token: FencingToken;
      /** How long the last good renewal was ago when it began or ended. */
      readonly sinceRenewalMs: number;
    }
  /** Records `loss` (the back-off counts it) and its reason, then ends the process with a code other than 0. */
  | {
      readonly kind: 'exit';
      readonly reason: LossReason;
      readonly loss: { readonly token: FencingToken | undefined; readonly heldMs: number } | undefined;
    };

export interface Step {
  readonly state: HolderState;
  readonly effects: readonly Effect[];
}
