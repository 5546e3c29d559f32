import {
  BROKEN_HOLDER_ANNOTATION,
  GRACE_ANNOTATION,
  KIND,
  NODE_ANNOTATION,
  TAKEOVER_DELAY_ANNOTATION,
  TOKEN_ANNOTATION,
  YIELD_ANNOTATION,
} from '../api/names.ts';
import { type OnRenewalFailure, onRenewalFailureOf, type Takeover, takeoverOf } from './grant-terms.ts';
import type { PodView } from './pod.ts';
import { type FencingToken, parseFencingToken } from './token.ts';

/** A point in time on this process's monotonic clock, in milliseconds. Never compared across processes. */
export type Instant = number;

/** The part of a Lease that decisions read. */
export interface RawLease {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly deletionTimestamp?: string;
    readonly ownerReferences?: readonly { readonly kind: string; readonly uid: string }[];
  };
  readonly spec?: {
    readonly holderIdentity?: string;
    readonly leaseDurationSeconds?: number;
    readonly acquireTime?: string;
    readonly renewTime?: string;
    readonly leaseTransitions?: number;
  };
}

/**
 * What a grant promised when it was written: its expiry is reckoned by these, whatever the lock's spec says by then.
 */
export interface Terms {
  readonly leaseDurationSeconds: number;
  readonly takeoverDelaySeconds: number;
  readonly gracePeriodSeconds: number;
  readonly takeover: Takeover;
  readonly onRenewalFailure: OnRenewalFailure;
}

/** What the operator keeps of a lock's Lease. */
export interface LeaseView {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly resourceVersion: string;
  /** The lock it belongs to; another UID is that of a lock of this name that is gone. */
  readonly ownerUid: string | undefined;
  /** `undefined`: somebody wrote past the policy; nothing is granted on it. */
  readonly token: FencingToken | undefined;
  readonly holder: Holder | undefined;
  readonly acquireTime: string;
  readonly renewTime: string;
  readonly transitions: number;
  readonly terms: Terms;
  /** When this process first saw this very holder, acquireTime and renewTime. */
  readonly observedAt: Instant;
  /** When this process first saw this very grant confirmed; `undefined`: it is not. */
  readonly confirmedAt: Instant | undefined;
  /** Why its holder was asked to yield, if it was. */
  readonly yieldAsked: string | undefined;
  /** The holder of the grant that an administrator broke, while the lock is held in its stead. */
  readonly broken: Holder | undefined;
}

export interface Holder {
  readonly identity: string;
  readonly name: string;
  readonly uid: string;
  readonly node: string | undefined;
}

/** Reduces a Lease; `observedAt` is kept from `previous` when nothing that renews it has changed. */
export function leaseView(lease: RawLease, now: Instant, previous: LeaseView | undefined): LeaseView {
  const { metadata, spec } = lease;
  const annotations = metadata.annotations ?? {};
  const view = {
    namespace: metadata.namespace,
    name: metadata.name,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    ownerUid: metadata.ownerReferences?.find((owner) => owner.kind === KIND)?.uid,
    token: parseFencingToken(annotations[TOKEN_ANNOTATION]),
    holder: parseHolder(spec?.holderIdentity, annotations[NODE_ANNOTATION]),
    acquireTime: spec?.acquireTime ?? '',
    renewTime: spec?.renewTime ?? '',
    transitions: spec?.leaseTransitions ?? 0,
    terms: {
      leaseDurationSeconds: spec?.leaseDurationSeconds ?? DEFAULT_LEASE_DURATION_SECONDS,
      takeoverDelaySeconds: seconds(annotations[TAKEOVER_DELAY_ANNOTATION], DEFAULT_TAKEOVER_DELAY_SECONDS),
      gracePeriodSeconds: seconds(annotations[GRACE_ANNOTATION], DEFAULT_GRACE_SECONDS),
      takeover: takeoverOf(annotations),
      onRenewalFailure: onRenewalFailureOf(annotations),
    },
    yieldAsked: annotations[YIELD_ANNOTATION],
    broken: parseHolder(annotations[BROKEN_HOLDER_ANNOTATION], annotations[NODE_ANNOTATION]),
  };
  const sameGrant =
    previous?.uid === view.uid &&
    previous.holder?.identity === view.holder?.identity &&
    previous.acquireTime === view.acquireTime;
  const unchanged = sameGrant && previous.renewTime === view.renewTime;
  const confirmed = view.holder !== undefined && view.renewTime !== view.acquireTime;
  return {
    ...view,
    observedAt: unchanged ? previous.observedAt : now,
    confirmedAt: confirmed ? ((sameGrant ? previous.confirmedAt : undefined) ?? now) : undefined,
  };
}

export const DEFAULT_LEASE_DURATION_SECONDS = 15;
export const DEFAULT_TAKEOVER_DELAY_SECONDS = 5;
const DEFAULT_GRACE_SECONDS = 30;
const LONGEST_SECONDS = 999_999_999;

function seconds(text: string | undefined, fallback: number): number {
  return text !== undefined && /^[0-9]{1,9}$/.test(text) ? Number(text) : fallback;
}

function parseHolder(identity: string | undefined, node: string | undefined): Holder | undefined {
  if (identity === undefined || identity === '') return undefined;
  const at = identity.lastIndexOf('_');
  return { identity, name: at < 0 ? identity : identity.slice(0, at), uid: identity.slice(at + 1), node };
}

/** The terms of a grant to this Pod: the takeover delay also covers the kubelet's kills, one container after another. */
export function grantTerms(
  spec: Omit<Terms, 'gracePeriodSeconds'>,
  pod: Pick<PodView, 'containers' | 'graceSeconds'>,
): Terms {
  return {
    leaseDurationSeconds: spec.leaseDurationSeconds,
    takeoverDelaySeconds: Math.max(spec.takeoverDelaySeconds, SECONDS_PER_KILL * pod.containers + 1),
    // The API server knows no longest grace period; a Pod with an absurd one must not make its grant unwritable.
    gracePeriodSeconds: Math.min(pod.graceSeconds, LONGEST_SECONDS),
    takeover: spec.takeover,
    onRenewalFailure: spec.onRenewalFailure,
  };
}

/** The kubelet kills containers in turn and gives each at least this long (measured, kubernetes-facts.md). */
const SECONDS_PER_KILL = 2;

const SLOWEST_CLOCK = 0.9;

/** How long a grant may stay unconfirmed: a Pod that cannot confirm must not block the queue. */
export function confirmWindowMs(terms: Terms): number {
  return Math.min(10, terms.leaseDurationSeconds) * 1000;
}

/**
 * How long after its last observed renewal a holder that proves nothing may still write, in milliseconds.
 *
 * A holder that is terminating, evicted, out of time, force-deleted or unknown gets its grace period more: the kubelet
 * restarts nothing in a terminating Pod, so its programs may run until the grace period ends. That is counted by a clock
 * which may run 10 % slower than this process's.
 */
export function lapseMs(terms: Terms, holder: PodView | undefined): number {
  const ending =
    holder === undefined ||
    holder.deleting ||
    holder.disrupted ||
    holder.phase === 'Failed' ||
    holder.phase === 'Succeeded';
  const grace = ending ? Math.max(terms.gracePeriodSeconds, holder?.graceSeconds ?? 0) : 0;
  return (terms.leaseDurationSeconds + terms.takeoverDelaySeconds + Math.ceil(grace / SLOWEST_CLOCK)) * 1000;
}
