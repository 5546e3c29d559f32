/** What the demo has seen of the cluster, and what follows from it. Pure. */
import type { DistributedLock } from '../../src/api/generated/distributedlock.ts';
import { LEADER_LABEL, TOKEN_ANNOTATION } from '../../src/api/names.ts';
import { WaitReason } from '../../src/api/reasons.ts';
import { isConfirmedDead } from '../../src/core/death.ts';
import type { RawLease } from '../../src/core/lease.ts';
import type { RawPod } from '../../src/core/raw-pod.ts';
import { PROGRAM } from './objects.ts';

export interface Sight {
  /** Of the lock: who holds. */
  readonly lease: RawLease | undefined;
  /** Its status says who waits and why. */
  readonly lock: DistributedLock | undefined;
  /** Of the operator: which replica leads. */
  readonly election: RawLease | undefined;
  readonly pods: readonly RawPod[];
  /** The token that each Pod's program printed last, by Pod UID. */
  readonly printed: ReadonlyMap<string, string>;
  /** UIDs of the Pods whose processes the demo has stopped. */
  readonly frozen: ReadonlySet<string>;
}

export interface Holder {
  readonly name: string;
  readonly uid: string;
  readonly token: string;
}

export type RowState = 'holds' | 'granted' | 'stale' | 'waits' | 'stopping' | 'ended';

/** One Pod: what it does, by which token, and why. */
export interface Row {
  readonly pod: string;
  readonly state: RowState;
  readonly token: string;
  readonly why: string;
}

/** Whom the Lease names. */
export function holderOf({ lease }: Sight): Holder | undefined {
  const identity = lease?.spec?.holderIdentity ?? '';
  const at = identity.lastIndexOf('_');
  if (at < 0) return undefined;
  return {
    name: identity.slice(0, at),
    uid: identity.slice(at + 1),
    token: lease?.metadata.annotations?.[TOKEN_ANNOTATION] ?? '',
  };
}

/**
 * The holder once the hand-over is over: its program printed the Lease's token, no other program runs, and it alone
 * carries the leader label. `apart` is a Pod that is known to be late.
 */
export function settledHolder(sight: Sight, apart?: string): Holder | undefined {
  const holder = holderOf(sight);
  if (holder === undefined || sight.printed.get(holder.uid) !== holder.token) return undefined;
  const running = sight.pods.filter((pod) => programRuns(pod) && pod.metadata.uid !== apart);
  const labelled = sight.pods.filter((pod) => pod.metadata.labels?.[LEADER_LABEL] === 'true');
  return isOnly(running, holder.uid) && isOnly(labelled, holder.uid) ? holder : undefined;
}

const isOnly = (pods: readonly RawPod[], uid: string): boolean => pods.length === 1 && pods[0]?.metadata.uid === uid;

/** The Pods in the order of their names, numbers by value, so that a row keeps its place. */
export function rowsOf(sight: Sight): readonly Row[] {
  const rows = sight.pods
    .toSorted((a, b) => byName.compare(a.metadata.name, b.metadata.name))
    .map((pod) => rowOf(pod, sight));
  const holder = holderOf(sight);
  if (holder === undefined || sight.pods.some((pod) => pod.metadata.uid === holder.uid)) return rows;
  const { name, token } = holder;
  return [{ pod: name, state: 'ended', token, why: 'its Pod is gone; the operator has to pass the lock on' }, ...rows];
}

const byName = new Intl.Collator('en', { numeric: true });

function rowOf(pod: RawPod, sight: Sight): Row {
  const { name, uid } = pod.metadata;
  const holder = holderOf(sight);
  const row = (state: RowState, token: string, why: string): Row => ({ pod: name, state, token, why });
  const deleting = pod.metadata.deletionTimestamp !== undefined;
  const frozen = sight.frozen.has(uid);
  if (holder?.uid === uid) {
    const { token } = holder;
    if (hasEnded(pod)) return row('ended', token, 'its program has ended');
    if (deleting) return row('stopping', token, 'being deleted; keeps the lock until its program has ended');
    if (frozen) return row('holds', token, 'frozen: it cannot renew its lease');
    if (programOf(pod)?.state?.terminated !== undefined) return row('ended', token, 'its program has died');
    if (!programRuns(pod)) return row('granted', token, 'its program is being started');
    return row('holds', token, 'its program runs');
  }
  if (hasEnded(pod)) return row('ended', '', 'its program has ended');
  if (programRuns(pod)) {
    const token = sight.printed.get(uid) ?? '?';
    return row('stale', token, frozen ? 'frozen, and does not know that it lost the lock' : 'awake, being stopped');
  }
  if (deleting) return row('stopping', '', 'being deleted');
  return row('waits', '', whyWaiting(uid, sight));
}

const STARTING: ReadonlySet<string> = new Set([WaitReason.NotScheduled, WaitReason.SidecarNotRunning]);

function whyWaiting(uid: string, { lock }: Sight): string {
  const waiter = lock?.status?.queue?.find((each) => each.uid === uid);
  if (waiter === undefined || STARTING.has(waiter.reason)) return 'starting';
  const message = (waiter.message ?? waiter.reason).replace(/\.$/, '');
  // The rest of the sentence names the holder, whose row is next to this one.
  if (waiter.reason === WaitReason.Waiting) return lowerFirst(message.split(';')[0] ?? message);
  return `${waiter.reason}: ${message}`;
}

const lowerFirst = (text: string): string => text.charAt(0).toLowerCase() + text.slice(1);

export function programRuns(pod: RawPod): boolean {
  return programOf(pod)?.state?.running !== undefined;
}

export function programOf(pod: RawPod) {
  return pod.status?.containerStatuses?.find((container) => container.name === PROGRAM);
}

export const hasEnded = (pod: RawPod): boolean =>
  isConfirmedDead(pod) || pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
