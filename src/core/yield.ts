import { YieldReason } from '../api/reasons.ts';
import type { AskYield } from './actions.ts';
import type { Instant, LeaseView } from './lease.ts';
import type { LockView } from './lock.ts';
import type { GrantGate } from './observed.ts';
import { type Candidate, preferredTo } from './preference.ts';
import { notStartedAt } from './progress.ts';
import { eligible, type Waiter } from './queue.ts';
import type { Standing } from './requests.ts';
import type { Tenure } from './tenure.ts';

export interface YieldInput {
  readonly lock: LockView;
  readonly lease: LeaseView;
  readonly tenure: Tenure;
  /** The holder's Pod as it is now; `undefined`: it is gone, or was never seen. */
  readonly holder: Candidate | undefined;
  readonly queue: readonly Waiter[];
  readonly gate: GrantGate;
  readonly handover: Standing;
}

export interface YieldDecision {
  readonly action: AskYield | undefined;
  /** When time alone may give a reason. */
  readonly recheckAt: Instant | undefined;
}

const NOTHING: YieldDecision = { action: undefined, recheckAt: undefined };

/**
 * Decides whether the holder is asked to yield: once for each grant, and only if another can be granted the lock.
 *
 * Neither before the holder has confirmed (then the confirm window passes the grant on), nor once its Pod ends by itself,
 * nor while no grants are given. The holder steps down as after a loss, and goes to the end of the queue.
 */
export function decideYield(input: YieldInput, now: Instant): YieldDecision {
  const { lock, lease, tenure, holder, gate, handover } = input;
  if (tenure.kind !== 'held' || !tenure.confirmed || lease.yieldAsked !== undefined) return NOTHING;
  if (!gate.open || lease.token === undefined || holder?.pod.deleting === true) return NOTHING;
  const ask = { kind: 'AskYield', lock, lease, holder: tenure.holder } as const;
  if (handover.kind === 'open' && handover.recorded) {
    const { request } = handover;
    return { action: { ...ask, reason: YieldReason.Requested, by: undefined, request }, recheckAt: undefined };
  }
  if (holder === undefined) return NOTHING;

  const reasons = reasonsToYield(input, holder);
  const due = reasons.filter(({ from }) => from <= now)[0];
  if (due !== undefined) {
    return { action: { ...ask, reason: due.reason, by: due.by, request: undefined }, recheckAt: undefined };
  }
  return { action: undefined, recheckAt: reasons.length === 0 ? undefined : Math.min(...reasons.map((r) => r.from)) };
}

interface Reason {
  readonly reason: YieldReason;
  /** The waiter on whose account the holder yields. */
  readonly by: Waiter['pod'] | undefined;
  readonly from: Instant;
}

function reasonsToYield({ lock, lease, queue }: YieldInput, holder: Candidate): readonly Reason[] {
  const able = eligible(queue);
  const { confirmedAt } = lease;
  if (able.length === 0 || confirmedAt === undefined) return [];
  const reasons: Reason[] = able.flatMap((waiter) => {
    const reason = preferredTo(waiter, holder);
    return reason === undefined ? [] : [{ reason, by: waiter.pod, from: confirmedAt }];
  });
  const { startDeadlineSeconds, maxHoldSeconds } = lock.spec;
  const notStarted = notStartedAt(holder.pod.progress, { confirmedAt, startDeadlineSeconds });
  if (notStarted !== undefined) reasons.push({ reason: YieldReason.NotStarted, by: undefined, from: notStarted });
  // Not to one that would have to give it back at once.
  if (maxHoldSeconds !== undefined && able.some((waiter) => preferredTo(holder, waiter) === undefined)) {
    reasons.push({ reason: YieldReason.MaxHold, by: undefined, from: confirmedAt + maxHoldSeconds * 1000 });
  }
  return reasons;
}
