import { assertNever } from './assert-never.ts';
import type { StateOf } from './holder-moves.ts';
import type { HolderState } from './holder-types.ts';
import { continues } from './holder-unrenewed.ts';
import type { Instant } from './lease.ts';

/** What a program may know of its lock: the body of `GET /v1/lock` and of each event of `GET /v1/watch`. */
export interface LockView {
  /**
   * `waiting`: another holds it, or nobody does. `held`: the token is valid. `unrenewed`: the lease could not be renewed
   * and another may hold the lock; go on only behind a guard that checks the token (`onRenewalFailure: ContinueFenced`).
   * `losing`: stop now and say so (standby). `lost`: this Pod is about to be restarted.
   */
  readonly state: 'waiting' | 'held' | 'unrenewed' | 'losing' | 'lost';
  /** A decimal string; present only while held or unrenewed. */
  readonly token?: string;
  /** Until the deadline, if no renewal succeeds before; 0 while unrenewed; else absent. */
  readonly expiresInSeconds?: number;
  /** Until everything is restarted; present only while losing. */
  readonly stopInSeconds?: number;
  /** Who holds the lock, as `<pod>_<uid>`; present while waiting, if somebody does. */
  readonly holder?: string;
  /** A LossReason; present while losing and when lost. */
  readonly reason?: string;
}

/**
 * Shows a state at `now`.
 *
 * Answers from the deadline, not from memory: past it nothing is ever shown as held, even if nobody noticed yet
 * (kubernetes-retired/contrib#690).
 */
export function viewOf(state: HolderState, now: Instant): LockView {
  switch (state.kind) {
    case 'starting':
    case 'waiting':
    case 'confirming':
    case 'opening':
    case 'releasing': {
      const holder = state.seen?.lease?.holder ?? '';
      return holder === '' || holder === state.identity ? { state: 'waiting' } : { state: 'waiting', holder };
    }
    case 'holding':
      if (now >= state.deadline)
        return continues(state) ? unrenewed(state) : { state: 'lost', reason: 'DeadlinePassed' };
      return { state: 'held', token: String(state.grant.token), expiresInSeconds: secondsBetween(now, state.deadline) };
    case 'unrenewed':
      return unrenewed(state);
    case 'losing':
      if (now >= state.stopAt) return { state: 'lost', reason: state.reason };
      return { state: 'losing', reason: state.reason, stopInSeconds: secondsBetween(now, state.stopAt) };
    case 'lost':
      return { state: 'lost', reason: state.reason };
    default:
      return assertNever(state);
  }
}

const unrenewed = ({ grant }: StateOf<'holding' | 'unrenewed'>): LockView => ({
  state: 'unrenewed',
  token: String(grant.token),
  expiresInSeconds: 0,
});

/** Why a request of the program cannot be granted. */
export interface Refusal {
  readonly code: 'GateMode' | 'NotHeld' | 'StillHeld' | 'Lost';
  readonly message: string;
}

const GATE_MODE: Refusal = {
  code: 'GateMode',
  message:
    'This Pod is in gate mode: its lock is released when its programs have ended. To release it by request, set kilit.dev/mode: standby in the Pod template and create the Pod anew.',
};
const LOST: Refusal = { code: 'Lost', message: 'The lock is lost already, and this Pod is about to be restarted.' };

/** Whether `POST /v1/release` may be granted; `undefined`: yes. */
export function refuseRelease(state: HolderState, now: Instant): Refusal | undefined {
  if (state.mode === 'gate') return GATE_MODE;
  const view = viewOf(state, now);
  if (view.state === 'lost') return LOST;
  if (view.state === 'waiting')
    return { code: 'NotHeld', message: 'This Pod does not hold the lock, so there is nothing to release.' };
  return undefined;
}

/** Whether `POST /v1/stood-down` may be granted; `undefined`: yes. Saying it again while waiting does no harm. */
export function refuseStoodDown(state: HolderState, now: Instant): Refusal | undefined {
  if (state.mode === 'gate') return GATE_MODE;
  const view = viewOf(state, now);
  if (view.state === 'lost') return LOST;
  if (view.state === 'held') {
    return {
      code: 'StillHeld',
      message: 'The lock is still held. To give it up, stop the work and use POST /v1/release.',
    };
  }
  return undefined;
}

/** Rounded down to milliseconds: a program must not believe in more time than there is. */
function secondsBetween(from: Instant, to: Instant): number {
  return Math.floor(Math.max(0, to - from)) / 1000;
}
