import { breakIdentity } from '../api/names.ts';
import { EndReason } from '../api/reasons.ts';
import {
  confirmWindowMs,
  grantTerms,
  type Holder,
  type Instant,
  type LeaseView,
  lapseMs,
  type Terms,
} from './lease.ts';
import type { LockView } from './lock.ts';
import type { PodView } from './pod.ts';
import { hasPodFinalizer } from './pod-finalizer.ts';
import { isVouchedFor } from './requests.ts';
import { parseFencingToken } from './token.ts';

/**
 * What the operator may conclude about the right that a Lease records.
 *
 * ```
 *   grant ──▶ held, unconfirmed ──▶ held, confirmed ──▶ ended ──▶ free or the next grant
 *                   └──────── not confirmed in time ───────▲
 *                   └── an administrator breaks it ──▶ broken┘
 * ```
 */
export type Tenure =
  | { readonly kind: 'free' }
  | {
      readonly kind: 'held';
      readonly holder: Holder;
      readonly confirmed: boolean;
      /** Its lease has lapsed, but only the end of its Pod ends the grant (`takeover: PodGone`), or nobody waits for it. */
      readonly silent: boolean;
      readonly recheckAt: Instant | undefined;
    }
  | { readonly kind: 'ended'; readonly holder: Holder; readonly reason: EndReason }
  /** An administrator broke the grant: until `until` its holder may still be alive. */
  | { readonly kind: 'broken'; readonly holder: Holder; readonly until: Instant }
  /**
   * The Lease is new, but the lock was granted before: an earlier holder may still be alive until `until`; `undefined`:
   * until its end is confirmed.
   */
  | { readonly kind: 'previous'; readonly until: Instant | undefined };

/**
 * Judges a Lease at `now`.
 *
 * Assumes: `lease.observedAt` is this process's own monotonic clock. Times that other machines wrote are compared for
 * equality only, so a skewed clock changes nothing.
 */
export function judgeTenure(
  lease: LeaseView,
  context: {
    readonly lock: LockView;
    readonly pods: readonly PodView[];
    /** The live or last seen object of a Pod, by UID. */
    readonly lastSeen: (uid: string) => PodView | undefined;
  },
  now: Instant,
): Tenure {
  const { holder } = lease;
  if (holder === undefined) return judgeFree(lease, context, now);

  if (holder.identity === breakIdentity(context.lock.uid))
    return judgeBroken(lease, lease.broken ?? holder, context, now);

  const pod = context.lastSeen(holder.uid);
  if (pod?.confirmedDead) return { kind: 'ended', holder, reason: EndReason.ConfirmedDeath };

  const confirmed = lease.renewTime !== lease.acquireTime;
  if (!confirmed) {
    const window = confirmWindowMs(lease.terms);
    // The mark on the Pod takes away its place in the queue. It should come first, so that a Pod that cannot confirm
    // goes to the end also when the operator dies in between; a Pod that cannot be written must not block the queue.
    const placeTaken = pod === undefined || pod.queuedAt === undefined;
    const recheckAt = lease.observedAt + (placeTaken ? window : 2 * window);
    return now >= recheckAt
      ? { kind: 'ended', holder, reason: EndReason.NotConfirmed }
      : { kind: 'held', holder, confirmed, silent: false, recheckAt };
  }

  const recheckAt = lease.observedAt + lapseMs(lease.terms, pod);
  if (now < recheckAt) return { kind: 'held', holder, confirmed, silent: false, recheckAt };
  return lease.terms.takeover === 'PodGone'
    ? { kind: 'held', holder, confirmed, silent: true, recheckAt: undefined }
    : { kind: 'ended', holder, reason: EndReason.Expired };
}

/**
 * An expired grant by `onRenewalFailure: ContinueFenced` that nobody waits for stays as it is: its program may go on, and
 * can renew again, with the same token. Not if its Pod is on its way out, or gone.
 */
export function leftOn(tenure: Tenure, { terms }: LeaseView, lastSeen: (uid: string) => PodView | undefined): Tenure {
  if (tenure.kind !== 'ended' || tenure.reason !== EndReason.Expired || terms.onRenewalFailure === 'Stop')
    return tenure;
  const { holder } = tenure;
  const pod = lastSeen(holder.uid);
  const mayGoOn = pod !== undefined && !pod.deleting && !pod.disrupted && pod.phase === 'Running';
  return mayGoOn ? { kind: 'held', holder, confirmed: true, silent: true, recheckAt: undefined } : tenure;
}

/** The broken holder sees that it holds no more, or its deadline passes; then it is as dead as after an expiry. */
function judgeBroken(
  lease: LeaseView,
  holder: Holder,
  { lastSeen }: Parameters<typeof judgeTenure>[1],
  now: Instant,
): Tenure {
  const pod = lastSeen(holder.uid);
  const until = lease.observedAt + lapseMs(lease.terms, pod);
  return pod?.confirmedDead || now >= until
    ? { kind: 'ended', holder, reason: EndReason.Broken }
    : { kind: 'broken', holder, until };
}

/** A Lease with token 0 under a lock that was granted before has been made anew: wait as for an expiry, plus grace. */
function judgeFree(lease: LeaseView, context: Parameters<typeof judgeTenure>[1], now: Instant): Tenure {
  if (lease.token !== 0n) return { kind: 'free' };
  const earlier = earlierGrant(context);
  if (earlier === undefined) return { kind: 'free' };
  if (earlier.untilDeath) return { kind: 'previous', until: undefined };
  const until = lease.observedAt + lapseMs(earlier.terms, undefined);
  return now >= until ? { kind: 'free' } : { kind: 'previous', until };
}

/**
 * The terms of a grant that may be alive although its Lease is gone, or undefined if the lock was never granted.
 *
 * Status and marks follow a grant, so they may name an earlier one: an operator that was stopped in between wrote neither.
 * So also a holder that is known to be dead proves nothing, and the terms are the longest that any living Pod of this lock
 * can have been granted it with. Under `takeover: PodGone` a holder that status or mark names must end first
 * (`untilDeath`), unless an administrator broke that grant. If both lag behind the grant nobody is known to wait for:
 * then time decides.
 */
export function earlierGrant(context: {
  readonly lock: LockView;
  readonly pods: readonly PodView[];
  readonly lastSeen: (uid: string) => PodView | undefined;
}): { readonly terms: Terms; readonly untilDeath: boolean } | undefined {
  const { lock, lastSeen } = context;
  const { terms, fencingToken } = lock.status;
  const pods = context.pods.filter((pod) => !pod.confirmedDead);
  const marked = pods.find((pod) => pod.token !== undefined);
  const everGranted = (parseFencingToken(fencingToken) ?? 0n) > 0n;
  if (lock.status.holder === undefined && marked === undefined && !everGranted) return undefined;
  const named = lock.status.holder === undefined ? undefined : lastSeen(lock.status.holder.uid);
  const holder = named?.confirmedDead ? undefined : lock.status.holder;
  const suspects = holder !== undefined && named !== undefined ? [...pods, named] : pods;
  const longest = grantTerms(lock.spec, {
    containers: Math.max(1, ...suspects.map(({ containers }) => containers)),
    graceSeconds: Math.max(terms?.gracePeriodSeconds ?? 30, ...suspects.map(({ graceSeconds }) => graceSeconds)),
  });
  const known: Terms =
    terms === undefined ? longest : { takeover: 'Lease', onRenewalFailure: 'Stop', ...longerOf(terms, longest) };
  const untilDeath =
    holder === undefined ? marked !== undefined && hasPodFinalizer(marked) : known.takeover === 'PodGone';
  return { terms: known, untilDeath: untilDeath && !isVouchedFor(lock) };
}

/** The terms `a`, with the longer times of both. */
const longerOf = <T extends Pick<Terms, Times>>(a: T, b: Pick<Terms, Times>): T => ({
  ...a,
  leaseDurationSeconds: Math.max(a.leaseDurationSeconds, b.leaseDurationSeconds),
  takeoverDelaySeconds: Math.max(a.takeoverDelaySeconds, b.takeoverDelaySeconds),
  gracePeriodSeconds: Math.max(a.gracePeriodSeconds, b.gracePeriodSeconds),
});

type Times = 'leaseDurationSeconds' | 'takeoverDelaySeconds' | 'gracePeriodSeconds';
