import type { DistributedLock } from '../../api/generated/distributedlock.ts';
import { EndReason, EventReason } from '../../api/reasons.ts';
import { grantTerms, type LeaseView, leaseView, type RawLease, type Terms } from '../../core/lease.ts';
import { lockView } from '../../core/lock.ts';
import { nodeView, type RawNode } from '../../core/node.ts';
import { waiters } from '../../core/queue.ts';
import type { RawPod } from '../../core/raw-pod.ts';
import { orElse, type Read } from '../attempt.ts';
import { viewOf } from '../pod-view.ts';
import { type GrantRecord, type GrantRequest, lastRecord, type RequestKind, standingRequest } from './grant-request.ts';
import { nextInLine } from './row.ts';

/** An event of events.k8s.io/v1, as far as it is shown. */
export interface RawEvent {
  readonly metadata: { readonly creationTimestamp?: string };
  readonly eventTime?: string | null;
  readonly reason?: string;
  readonly note?: string;
  readonly regarding?: { readonly kind?: string; readonly name?: string };
  readonly related?: { readonly kind?: string; readonly name?: string };
}

/** What `describe` reads. */
export interface LockFacts {
  readonly lock: DistributedLock;
  readonly lease: Read<RawLease>;
  readonly events: Read<readonly RawEvent[]>;
  /** Read only when the status does not show the whole queue. */
  readonly pods: Read<readonly RawPod[]>;
  readonly nodes: Read<readonly RawNode[]>;
}

export interface QueueEntry {
  readonly name: string;
  readonly next: boolean;
  readonly reason: string;
  readonly message: string;
}

/** Everything that `describe` tells, for programs as it is, for people by `renderDescription`. */
export interface Description {
  readonly namespace: string;
  readonly name: string;
  readonly createdTime: string | null;
  readonly holder: { readonly pod: string; readonly node: string | null; readonly since: string } | null;
  readonly token: string;
  readonly grants: number;
  readonly timings: {
    readonly grant: Terms | null;
    readonly nextGrant: Omit<Terms, 'gracePeriodSeconds'>;
    /** By the holder's clock. */
    readonly renewTime: string | null;
    readonly confirmed: boolean;
    /** Of the grant: whether a silent holder loses the lock by time, or by its Pod's end alone. */
    readonly takeover: 'Lease' | 'PodGone';
    /** Of the grant: what its programs do when it cannot be renewed. */
    readonly onRenewalFailure: 'Stop' | 'ContinueFenced';
  };
  readonly waiters: number;
  readonly queue: readonly QueueEntry[];
  readonly conditions: NonNullable<NonNullable<DistributedLock['status']>['conditions']>;
  readonly losses: readonly { readonly time: string; readonly reason: string; readonly note: string }[];
  readonly requests: Readonly<
    Record<RequestKind, { readonly standing: GrantRequest | 'unreadable' | null; readonly last: GrantRecord | null }>
  >;
  /** What could not be read, and why. */
  readonly unread: readonly string[];
}

export function describeLock(facts: LockFacts): Description {
  const { lock } = facts;
  const { metadata, status = {} } = lock;
  const lease = facts.lease.ok ? leaseView(facts.lease.value, 0, undefined) : undefined;
  const { queue, unread } = queueOf(facts, lease);
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    createdTime: metadata.creationTimestamp ?? null,
    holder: holderOf(lock, lease),
    token: (lease?.token ?? status.fencingToken ?? '0').toString(),
    grants: lease?.transitions ?? status.transitions ?? 0,
    timings: {
      grant: lease?.holder === undefined ? null : lease.terms,
      nextGrant: nextTerms(lock),
      renewTime: lease?.holder === undefined || lease.renewTime === '' ? null : lease.renewTime,
      confirmed: lease !== undefined && lease.renewTime !== lease.acquireTime,
      takeover: termOf(facts, 'kilit.dev/takeover') === 'PodGone' ? 'PodGone' : 'Lease',
      onRenewalFailure: termOf(facts, 'kilit.dev/on-renewal-failure') === 'ContinueFenced' ? 'ContinueFenced' : 'Stop',
    },
    waiters: Math.max(status.waiters ?? 0, queue.length),
    queue,
    conditions: status.conditions ?? [],
    losses: lossesOf(orElse(facts.events, [])),
    requests: { break: requestsOf(lock, 'break'), handover: requestsOf(lock, 'handover') },
    unread: [
      ...(facts.lease.ok ? [] : [`the Lease (${facts.lease.why}); holder and token are the status's`]),
      ...(facts.events.ok ? [] : [`events (${facts.events.why})`]),
      ...unread,
    ],
  };
}

/** The Lease is the truth; the status follows it. */
function holderOf({ status = {} }: DistributedLock, lease: LeaseView | undefined): Description['holder'] {
  if (lease === undefined) {
    const { holder, acquiredTime = '' } = status;
    return holder === undefined ? null : { pod: holder.name, node: holder.node ?? null, since: acquiredTime };
  }
  const { holder, acquireTime } = lease;
  return holder === undefined ? null : { pod: holder.name, node: holder.node ?? null, since: acquireTime };
}

const termOf = ({ lease }: LockFacts, annotation: string): string | undefined =>
  lease.ok ? lease.value.metadata.annotations?.[annotation] : undefined;

/** At least this much is waited for; a Pod of several containers more, which only its grant tells. */
function nextTerms(lock: DistributedLock): Omit<Terms, 'gracePeriodSeconds'> {
  const { gracePeriodSeconds: _, ...terms } = grantTerms(lockView(lock).spec, { containers: 2, graceSeconds: 30 });
  return terms;
}

function queueOf(
  { lock, pods, nodes }: LockFacts,
  lease: LeaseView | undefined,
): { readonly queue: readonly QueueEntry[]; readonly unread: readonly string[] } {
  const { status = {} } = lock;
  const shown = status.queue ?? [];
  const next = nextInLine(status);
  const entries = shown.map(({ name, uid, reason, message = '' }) => ({
    name,
    next: uid === next?.uid,
    reason,
    message,
  }));
  if ((status.waiters ?? 0) <= shown.length) return { queue: entries, unread: [] };
  if (!pods.ok) return { queue: entries, unread: [`waiters after the first ${shown.length} (${pods.why})`] };
  const known = new Map(orElse(nodes, []).map((node) => [node.metadata.name, nodeView(node)]));
  const listed = new Set(shown.map(({ uid }) => uid));
  const others = waiters(pods.value.map(viewOf), known, lease?.holder?.uid ?? status.holder?.uid)
    .filter(({ pod }) => !listed.has(pod.uid))
    .map(({ pod, obstacle }) => ({
      name: pod.name,
      next: false,
      reason: nodes.ok ? (obstacle?.reason ?? 'Waiting') : 'Unknown',
      message: nodes.ok ? (obstacle?.message ?? '') : '',
    }));
  const unread = nodes.ok ? [] : [`why the waiters after the first ${shown.length} wait (${nodes.why})`];
  return { queue: [...entries, ...others], unread };
}

const LOSS: readonly string[] = [...Object.values(EndReason), EventReason.Lost, 'Broken', 'Yielded', 'HandedOver'];
const LOSSES_SHOWN = 5;

/** The newest first. */
function lossesOf(events: readonly RawEvent[]): Description['losses'] {
  return events
    .filter(({ reason = '' }) => LOSS.includes(reason))
    .map(({ metadata, eventTime, reason = '', note = '' }) => ({
      time: eventTime ?? metadata.creationTimestamp ?? '',
      reason,
      note,
    }))
    .toSorted((a, b) => (a.time < b.time ? 1 : -1))
    .slice(0, LOSSES_SHOWN);
}

const requestsOf = (lock: DistributedLock, kind: RequestKind) => ({
  standing: standingRequest(lock, kind) ?? null,
  last: lastRecord(lock, kind) ?? null,
});
