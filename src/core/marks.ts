import { EventReason, WaitReason, YieldReason } from '../api/reasons.ts';
import type { Action } from './actions.ts';
import type { LeaseView } from './lease.ts';
import type { LockView } from './lock.ts';
import type { Now } from './observed.ts';
import type { PodView } from './pod.ts';
import { decidePodFinalizer } from './pod-finalizer.ts';
import { endOfQueue, type Waiter } from './queue.ts';
import type { Tenure } from './tenure.ts';

interface Context {
  readonly lock: LockView | undefined;
  readonly lease: LeaseView | undefined;
  readonly tenure: Tenure | undefined;
  readonly queue: readonly Waiter[];
  readonly pods: readonly PodView[];
  /** Who is granted the lock next, if it can be granted now. */
  readonly grantee: PodView | undefined;
}

/**
 * Shows the grant on the holder's Pod, and gives newcomers and losers their place in the queue.
 *
 * A Pod is in the queue while it carries `kilit.dev/queued-at`; the mark of a grant takes that away, so whoever loses
 * the lock has no place and gets the last one. All of it is in the objects: an operator that restarts goes on with it.
 */
export function decidePods(context: Context, now: Now): readonly Action[] {
  const { queue, pods } = context;
  const waiting = new Set(queue.map(({ pod }) => pod.uid));
  let place = endOfQueue(queue, now.micros);
  return [...queue.map(({ pod }) => pod), ...pods.filter(({ uid }) => !waiting.has(uid))].flatMap((pod): Action[] => {
    const want = wanted(pod, context);
    if (want === 'holder-mark') {
      const notStarted = context.lease?.yieldAsked === YieldReason.NotStarted;
      return [{ kind: 'MarkHolder', pod, token: context.lease?.token ?? 0n, notStarted }];
    }
    if (want === 'no-mark') return [{ kind: 'Unmark', pod }];
    if (want === 'nothing') return [...decidePodFinalizer(pod, { ...context, leaseLost: isLeaseLost(context) })];
    const notStarted = yielded(pod, context) && context.lease?.yieldAsked === YieldReason.NotStarted;
    return [
      { kind: 'JoinQueue', pod, lock: context.lock, queuedAt: place++, notStarted, ...joinMessage(pod, context) },
    ];
  });
}

function wanted(
  pod: PodView,
  { lock, lease, tenure, queue }: Context,
): 'holder-mark' | 'last-place' | 'no-mark' | 'nothing' {
  const marked = pod.token !== undefined || pod.leader;
  if (tenure?.kind === 'held' && tenure.holder.uid === pod.uid) {
    const token = lease?.token?.toString();
    const notStarted = lease?.yieldAsked === YieldReason.NotStarted ? token : undefined;
    const shown = pod.token === token && pod.leader && pod.queuedAt === undefined && pod.notStarted === notStarted;
    return shown ? 'nothing' : 'holder-mark';
  }
  // The Lease still names it: first that ends, by a write of its own.
  if (tenure?.kind === 'ended' && tenure.holder.uid === pod.uid) return 'nothing';
  // Its mark is the evidence that an earlier holder may be alive.
  if (isLeaseLost({ lock, tenure }) && marked && !pod.confirmedDead) return 'nothing';

  const waits = queue.some((waiter) => waiter.pod.uid === pod.uid) && !pod.deleting;
  if (waits && (marked || pod.queuedAt === undefined)) return 'last-place';
  return marked ? 'no-mark' : 'nothing';
}

/** There is no Lease, or a new one. */
const isLeaseLost = ({ lock, tenure }: Pick<Context, 'lock' | 'tenure'>): boolean =>
  lock !== undefined && (tenure === undefined || tenure.kind === 'previous');

/** Its last grant is the Lease's, which says that it was asked to yield. Best effort: a grant takes that away. */
const yielded = (pod: PodView, { lease }: Context): boolean =>
  lease?.yieldAsked !== undefined && pod.token !== undefined && pod.token === lease.token?.toString();

function joinMessage(
  pod: PodView,
  context: Context,
): Pick<Extract<Action, { kind: 'JoinQueue' }>, 'reason' | 'message'> {
  const { lock, lease, tenure, queue } = context;
  if (lock === undefined) {
    return {
      reason: WaitReason.LockNotFound,
      message: `DistributedLock ${pod.lock} does not exist in namespace ${pod.namespace}. Create it; the Pod starts then.`,
    };
  }
  const obstacle = queue.find((waiter) => waiter.pod.uid === pod.uid)?.obstacle;
  if (obstacle?.reason === WaitReason.NotInjected) return obstacle;
  if (yielded(pod, context)) {
    return {
      reason: EventReason.Yielded,
      message: `Yielded lock ${lock.name} (token ${pod.token ?? ''}, ${lease?.yieldAsked ?? ''}); waits again, last in the queue.`,
    };
  }
  if (pod.token !== undefined) {
    return {
      reason: EventReason.Lost,
      message: `Lost lock ${lock.name} (token ${pod.token}); waits again, last in the queue.`,
    };
  }
  const by = tenure?.kind === 'held' ? `held by Pod ${tenure.holder.name}` : 'which nobody holds';
  const ahead = queue.filter((waiter) => waiter.pod.queuedAt !== undefined).length;
  return { reason: EventReason.Queued, message: `Waits for lock ${lock.name}, ${by}; ${ahead} ahead in the queue.` };
}
