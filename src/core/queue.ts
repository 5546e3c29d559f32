import { WaitReason } from '../api/reasons.ts';
import { type NodeView, nodeTooOld } from './node.ts';
import type { PodView } from './pod.ts';
import { type Candidate, preferredTo } from './preference.ts';

/** A Pod in a lock's queue, and why it waits. */
export interface Waiter extends Candidate {
  /** `undefined`: it could be granted the lock now. */
  readonly obstacle: Obstacle | undefined;
}

export interface Obstacle {
  readonly reason: WaitReason;
  readonly message: string;
}

/** The Pods that wait, in the order in which they are granted the lock. */
export function waiters(
  pods: readonly PodView[],
  nodes: ReadonlyMap<string, NodeView>,
  holderUid: string | undefined,
): readonly Waiter[] {
  const order = new Map(pods.map(({ uid }, index) => [uid, index]));
  return pods
    .filter((pod) => pod.uid !== holderUid && !hasEnded(pod))
    .toSorted(byQueue)
    .map((pod) => ({ ...candidate(pod, nodes, order.get(pod.uid)), obstacle: obstacle(pod, nodes) }));
}

function candidate(pod: PodView, nodes: ReadonlyMap<string, NodeView>, order = -1): Candidate {
  const cordoned = pod.node !== undefined && (nodes.get(pod.node)?.cordoned ?? false);
  return { pod, cordoned, order };
}

/** The holder's Pod, if it is still there. */
export function holderCandidate(
  pods: readonly PodView[],
  nodes: ReadonlyMap<string, NodeView>,
  uid: string | undefined,
): Candidate | undefined {
  const order = pods.findIndex((pod) => pod.uid === uid);
  const pod = pods[order];
  return pod === undefined ? undefined : candidate(pod, nodes, order);
}

/** It will not start anything any more. The kubelet shows a terminal phase a little after it reports the ends. */
const hasEnded = (pod: PodView): boolean => pod.confirmedDead || pod.phase === 'Succeeded' || pod.phase === 'Failed';

/**
 * By the time the operator wrote at joining, ties by UID; those it has not written yet come last, by creation.
 *
 * `createdAt` has whole seconds; the sort is stable, so Pods of one second keep the order in which they were observed.
 */
function byQueue(a: PodView, b: PodView): number {
  if (a.queuedAt !== undefined && b.queuedAt !== undefined) {
    if (a.queuedAt !== b.queuedAt) return a.queuedAt < b.queuedAt ? -1 : 1;
    return a.uid < b.uid ? -1 : 1;
  }
  if (a.queuedAt !== undefined || b.queuedAt !== undefined) return a.queuedAt !== undefined ? -1 : 1;
  return a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0;
}

/** What keeps a Pod from being granted a free lock, or undefined. */
function obstacle(pod: PodView, nodes: ReadonlyMap<string, NodeView>): Obstacle | undefined {
  if (pod.deleting) return { reason: WaitReason.Terminating, message: 'It is being deleted.' };
  if (!pod.injected) {
    return {
      reason: WaitReason.NotInjected,
      message:
        'It has no kilit sidecar: it was created before kilit was installed. Delete it, so that it is made anew.',
    };
  }
  if (pod.node === undefined) return { reason: WaitReason.NotScheduled, message: 'No node has been found for it yet.' };
  const node = nodes.get(pod.node);
  if (node === undefined) return { reason: WaitReason.NodeNotReady, message: `Node ${pod.node} is unknown.` };
  const tooOld = nodeTooOld(node);
  if (tooOld !== undefined) {
    return {
      reason: WaitReason.NodeTooOld,
      message: `The ${tooOld}: its gate would not hold. Move the Pod to a newer node.`,
    };
  }
  if (!node.ready) return { reason: WaitReason.NodeNotReady, message: `Node ${pod.node} is not Ready.` };
  if (!pod.sidecarRunning) {
    return {
      reason: WaitReason.SidecarNotRunning,
      message: `Its sidecar does not run: ${pod.sidecarWaiting ?? 'NotStarted'}.`,
    };
  }
  return undefined;
}

/** Those that can be granted the lock, in the order of the queue; the others keep their places. */
export const eligible = (queue: readonly Waiter[]): readonly Waiter[] =>
  queue.filter((waiter) => waiter.obstacle === undefined && waiter.pod.queuedAt !== undefined);

/**
 * The first that can be granted the lock, and would not be asked at once to yield it to another one of them.
 *
 * So a waiter of an old version, or on a cordoned node, is passed over while a new one, or one elsewhere, can be granted
 * the lock (decision 7). It keeps its place.
 */
export function firstEligible(queue: readonly Waiter[]): PodView | undefined {
  const able = eligible(queue);
  return able.find((waiter) => !able.some((other) => preferredTo(other, waiter) !== undefined))?.pod;
}

/** The next place at the end of the queue: the present microsecond, or just after the last waiter if a clock stepped back. */
export function endOfQueue(queue: readonly Waiter[], nowMicros: bigint): bigint {
  let last = nowMicros;
  for (const { pod } of queue) {
    if (pod.queuedAt !== undefined && pod.queuedAt >= last) last = pod.queuedAt + 1n;
  }
  return last;
}
