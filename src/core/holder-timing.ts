import { assertNever } from './assert-never.ts';
import type { HolderState, Mode } from './holder-types.ts';
import type { Instant } from './lease.ts';

/** The parts of a lease duration that a holder lives by. */
const RENEW_AFTER = 1 / 3;
/** Two tries of a third's remainder fit: 1/3 + 2 × (1/4 + 1/20) < 0.9 + 1/30; the proof is a test. */
const REQUEST_TIMEOUT = 1 / 4;
/** Standby: when the program is told that renewals fail. It has the rest until the deadline to stop. */
const TELL_AFTER = 0.7;
/** Clocks may run 10 % apart. */
const STOP_AFTER = 0.9;

/** One request may hang 34 s at the server; no write is waited for that long. */
const LONGEST_REQUEST_TIMEOUT_MS = 10_000;

export const renewAt = (renewedAt: Instant, leaseMs: number): Instant => renewedAt + leaseMs * RENEW_AFTER;
export const tellAt = (renewedAt: Instant, leaseMs: number): Instant => renewedAt + leaseMs * TELL_AFTER;
export const deadlineAt = (renewedAt: Instant, leaseMs: number): Instant => renewedAt + leaseMs * STOP_AFTER;
/** Standby, after somebody else was seen to hold: the program gets as long as between being told and the deadline. */
export const stopAfterToldMs = (leaseMs: number): number => leaseMs * (STOP_AFTER - TELL_AFTER);
/** How long one request may take, in milliseconds. */
export const requestTimeoutMs = (leaseMs: number): number =>
  Math.min(leaseMs * REQUEST_TIMEOUT, LONGEST_REQUEST_TIMEOUT_MS);

/**
 * How long to rest after the `failures`-th failure in a row, in milliseconds.
 *
 * While the lock is held the rest stays below a tenth of the lease (times 1.5 by jitter), so that tries go on until the
 * deadline; a release is in less of a hurry, and stays within the budget of a renewal every third.
 */
export function restMs(options: {
  readonly leaseMs: number;
  readonly failures: number;
  readonly jitter: number;
  /** `goOn`: past the deadline, by `onRenewalFailure: ContinueFenced`. */
  readonly purpose: 'hold' | 'goOn' | 'release';
}): number {
  const { leaseMs, failures, jitter, purpose } = options;
  const longest = {
    hold: leaseMs / 15,
    goOn: Math.min(leaseMs / 3, LONGEST_REST_UNRENEWED_MS),
    release: leaseMs * 0.66,
  }[purpose];
  const base = Math.min((leaseMs / 30) * 2 ** Math.min(Math.max(failures - 1, 0), 10), longest);
  return base * (0.5 + Math.min(Math.max(jitter, 0), 1));
}

/** Past the deadline nobody waits for this holder's every try, but it must see soon that somebody else holds. */
const LONGEST_REST_UNRENEWED_MS = 30_000;

/** When a state wants the next `tick`, if nothing else happens before; `undefined`: never. */
export function nextWake(state: HolderState): Instant | undefined {
  switch (state.kind) {
    case 'starting':
    case 'waiting':
    case 'lost':
      return undefined;
    case 'confirming':
    case 'unrenewed':
    case 'releasing':
      return state.attempt.kind === 'resting' ? state.attempt.until : undefined;
    case 'opening':
      return state.deadline;
    case 'holding': {
      const stop = stopsTrustingAt(state, state.mode);
      return state.attempt.kind === 'resting' ? Math.min(state.attempt.until, stop) : stop;
    }
    case 'losing':
      return state.stopAt;
    default:
      return assertNever(state);
  }
}

function stopsTrustingAt(state: HolderState & { kind: 'holding' }, mode: Mode): Instant {
  return mode === 'gate' || state.grant.onRenewalFailure === 'ContinueFenced'
    ? state.deadline
    : Math.min(state.deadline, tellAt(state.renewedAt, state.grant.leaseDurationMs));
}
