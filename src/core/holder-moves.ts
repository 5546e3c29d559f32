import { YieldReason } from '../api/reasons.ts';
import { LONG_HOLD_MS } from './backoff.ts';
import { type Grant, type ObservedLease, recordsGrant } from './holder-lease.ts';
import { deadlineAt, requestTimeoutMs, restMs, stopAfterToldMs } from './holder-timing.ts';
import {
  type Attempt,
  type Effect,
  type HolderEvent,
  type HolderState,
  LossReason,
  type Observation,
  type Seen,
  type Step,
  type WritePurpose,
  type WriteResult,
} from './holder-types.ts';
import type { Instant } from './lease.ts';

/** The moves that several states share. `Confirming`, `Holding` … are members of the union HolderState. */
export type StateOf<Kind extends HolderState['kind']> = Extract<HolderState, { readonly kind: Kind }>;
export type Trying = StateOf<'confirming' | 'holding' | 'unrenewed' | 'releasing'>;
export type Tenured = StateOf<'opening' | 'holding' | 'unrenewed' | 'losing'>;
export type Moment = Pick<HolderEvent, 'now' | 'jitter'>;

export function isTrying(state: HolderState): state is Trying {
  return (
    state.kind === 'confirming' || state.kind === 'holding' || state.kind === 'unrenewed' || state.kind === 'releasing'
  );
}

export const stay = (state: HolderState): Step => ({ state, effects: [] });

const baseOf = ({ identity, mode, seen, writes }: HolderState) => ({ identity, mode, seen, writes });

/**
 * Takes in what a read or a watch showed, unless it is older than what is known.
 *
 * A watch lags, and a read may have been overtaken by a write's reply: an old state of the Lease must not look like a
 * loss. A read that was sent after the last news is newer by definition, also when the revision fell (etcd restore).
 */
export function takeIn(state: HolderState, observation: Observation, now: Instant): HolderState | 'stale' {
  const { seen } = state;
  const { lease, revision, requestedAt } = observation;
  if (seen !== undefined && !(requestedAt !== undefined && requestedAt >= seen.at)) {
    if (revision === undefined || revision < seen.revision) return 'stale';
  }
  return withSeen(state, { at: now, lease, revision: revision ?? seen?.revision ?? 0n });
}

/** Takes in what a write's reply showed; a watch may have brought something newer already. */
export function takeReply<State extends HolderState>(state: State, lease: ObservedLease, now: Instant): State {
  return lease.revision < (state.seen?.revision ?? 0n)
    ? state
    : withSeen(state, { at: now, lease, revision: lease.revision });
}

function withSeen<State extends HolderState>(state: State, seen: Seen): State {
  return { ...state, seen };
}

/** Decides, without a program under any grant, what the Lease as known asks for. */
export function settle(state: HolderState, { now }: Moment): Step {
  const base = baseOf(state);
  const lease = base.seen?.lease;
  const told: readonly Effect[] = state.kind === 'waiting' ? [] : [{ kind: 'tell' }];
  const waiting: Step = { state: { ...base, kind: 'waiting' }, effects: told };
  if (lease === undefined || lease.holder !== base.identity || 'fault' in lease.grant) return waiting;
  const { grant } = lease;
  const attempt: Attempt = { kind: 'resting', until: now, failures: 0 };
  // A confirmed grant that this process does not use was used by an earlier life, or given up: those programs are dead.
  // One that is asked back before it is used has started nothing.
  return lease.confirmed || lease.yieldAsked !== undefined
    ? write({ ...base, kind: 'releasing', grant, attempt, next: 'wait' }, now)
    : write({ ...base, kind: 'confirming', grant, attempt }, now);
}

const PURPOSE = {
  confirming: 'confirm',
  holding: 'renew',
  unrenewed: 'renew',
  releasing: 'release',
} as const satisfies Record<Trying['kind'], WritePurpose>;

/** Sends the state's write; only while the Lease as known records the state's grant, for it is sent back changed. */
export function write(state: Trying, now: Instant): Step {
  const lease = ownLease(state);
  const { failures } = state.attempt;
  const timeoutMs = requestTimeoutMs(state.grant.leaseDurationMs);
  if (lease === undefined) {
    return { state: { ...state, attempt: { kind: 'reading', failures } }, effects: [{ kind: 'read', timeoutMs }] };
  }
  const id = state.writes + 1;
  return {
    state: { ...state, writes: id, attempt: { kind: 'writing', id, sentAt: now, failures } },
    effects: [{ kind: 'write', purpose: PURPOSE[state.kind], id, lease, timeoutMs }],
  };
}

/** The known Lease, if it still records the state's grant. */
export function ownLease(state: Trying | Tenured): ObservedLease | undefined {
  const lease = state.seen?.lease;
  return recordsGrant(lease, state.identity, state.grant) ? lease : undefined;
}

/** After a write that was not accepted: an answer that says no asks for a read, silence for another try. */
export function retry(state: Trying, result: Exclude<WriteResult['kind'], 'ok'>, moment: Moment): Step {
  const failures = state.attempt.failures + 1;
  if (result === 'conflict' || result === 'refused') {
    const timeoutMs = requestTimeoutMs(state.grant.leaseDurationMs);
    return { state: { ...state, attempt: { kind: 'reading', failures } }, effects: [{ kind: 'read', timeoutMs }] };
  }
  return stay(rest({ ...state, attempt: { ...state.attempt, failures } }, moment));
}

export function rest<State extends Trying>(state: State, { now, jitter }: Moment): State {
  const purpose = state.kind === 'releasing' ? 'release' : state.kind === 'unrenewed' ? 'goOn' : 'hold';
  const { failures } = state.attempt;
  const pause = restMs({ leaseMs: state.grant.leaseDurationMs, failures, jitter, purpose });
  return { ...state, attempt: { kind: 'resting', until: now + pause, failures } };
}

/** A read that a refused write asked for has come. One refusal is the news' fault; after more of them, rest first. */
export function resume(state: Trying, moment: Moment): Step {
  if (state.attempt.kind !== 'reading') return stay(state);
  return state.attempt.failures <= 1 ? write(state, moment.now) : stay(rest(state, moment));
}

/** The confirmation got a good reply in time: the program may have the token. */
export function open(state: StateOf<'confirming'>, sentAt: Instant): Step {
  const { grant } = state;
  const deadline = deadlineAt(sentAt, grant.leaseDurationMs);
  return {
    state: { ...baseOf(state), kind: 'opening', grant, renewedAt: sentAt, deadline, heldSince: sentAt },
    effects: [{ kind: 'writeFiles', token: grant.token }],
  };
}

/** The end of a grant that a program may have used: files first, then everything else. */
export function lose(state: Tenured, now: Instant, reason: LossReason): Step {
  const { token } = state.grant;
  const heldMs = Math.max(isPlanned(state, reason) ? LONG_HOLD_MS : 0, now - state.heldSince);
  return {
    state: { ...baseOf(state), kind: 'lost', reason, token },
    effects: [{ kind: 'removeFiles' }, { kind: 'tell' }, { kind: 'exit', reason, loss: { token, heldMs } }],
  };
}

/** A hand-over that is no fault of this Pod's: nothing to back off from, and the next holder waits for the release. */
const isPlanned = (state: Tenured, reason: LossReason): boolean =>
  reason === LossReason.YieldAsked && state.seen?.lease?.yieldAsked !== YieldReason.NotStarted;

/** The end of a process under which no program ran. A loss that the back-off must count carries `loss`. */
export function end(state: HolderState, reason: LossReason, options: { readonly counts: boolean }): Step {
  const grant: Grant | undefined = 'grant' in state ? state.grant : undefined;
  const loss = options.counts ? { token: grant?.token, heldMs: 0 } : undefined;
  return {
    state: { ...baseOf(state), kind: 'lost', reason, token: grant?.token },
    effects: [{ kind: 'removeFiles' }, { kind: 'tell' }, { kind: 'exit', reason, loss }],
  };
}

/** Standby: the grant is over for the program, which is told first. In gate mode and past the deadline: lost at once. */
export function tellOrLose(state: Tenured, now: Instant, reason: LossReason): Step {
  if (state.mode === 'gate' || state.kind === 'opening') return lose(state, now, reason);
  if (state.kind === 'losing') return stay(state);
  const { grant, renewedAt, deadline, heldSince } = state;
  const told = now + stopAfterToldMs(grant.leaseDurationMs);
  const stopAt =
    state.kind === 'unrenewed' ? told : reason === LossReason.DeadlinePassed ? deadline : Math.min(deadline, told);
  return {
    state: { ...baseOf(state), kind: 'losing', grant, renewedAt, deadline, heldSince, reason, stopAt },
    effects: [{ kind: 'removeFiles' }, { kind: 'tell' }],
  };
}

/** Why the Lease as known ends a grant, if it does. */
export function lossBy(state: Tenured): LossReason | undefined {
  const lease = state.seen?.lease;
  if (lease === undefined) return LossReason.LeaseDeleted;
  if (lease.holder !== state.identity) return LossReason.HolderChanged;
  if (!recordsGrant(lease, state.identity, state.grant)) return LossReason.GrantChanged;
  return lease.yieldAsked === undefined ? undefined : LossReason.YieldAsked;
}

/** The program said that it stopped: give the grant back if the Lease still records it, and wait. */
export function giveBack(state: StateOf<'holding' | 'unrenewed' | 'losing'>, moment: Moment): Step {
  const base = baseOf(state);
  const cleared: readonly Effect[] = [{ kind: 'removeFiles' }, { kind: 'tell' }];
  const attempt: Attempt = { kind: 'resting', until: moment.now, failures: 0 };
  const next =
    ownLease(state) === undefined
      ? settle({ ...base, kind: 'waiting' }, moment)
      : write({ ...base, kind: 'releasing', grant: state.grant, attempt, next: 'wait' }, moment.now);
  return { state: next.state, effects: [...cleared, ...next.effects] };
}
