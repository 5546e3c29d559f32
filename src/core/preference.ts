import { YieldReason } from '../api/reasons.ts';
import type { PodView } from './pod.ts';

/** A Pod that holds a lock or waits for it, as one is preferred to another. */
export interface Candidate {
  readonly pod: PodView;
  /** Its node is cordoned. */
  readonly cordoned: boolean;
  /** Its place in the order in which the Pods were first observed. */
  readonly order: number;
}

/**
 * Why the lock should go from `holder` to `waiter`, or undefined: then only the queue decides.
 *
 * 1. A Pod on a node that is not cordoned is preferred to one on a cordoned node.
 * 2. Where their nodes are alike, a Pod of a newer template is preferred to one of the same workload. Newer is the Pod
 *    that was made later: a rollback makes new Pods of an old template, and a former version that waits again asks nobody.
 * 3. A Pod whose programs did not start under its last grant is preferred to nobody: it waits for its turn.
 *
 * The first rule comes before the second, or a new version on a cordoned node and an old one elsewhere would take the
 * lock from each other for ever. So it is a strict order: there are no circles, and somebody is preferred by nobody.
 */
export function preferredTo(
  waiter: Candidate,
  holder: Candidate,
): typeof YieldReason.NewerRevision | typeof YieldReason.NodeDrain | undefined {
  if (waiter.pod.notStarted !== undefined) return undefined;
  if (waiter.cordoned !== holder.cordoned) return holder.cordoned ? YieldReason.NodeDrain : undefined;
  return isNewerRevision(waiter, holder) ? YieldReason.NewerRevision : undefined;
}

/** `createdAt` has whole seconds; Pods of one second are told apart by the order in which they were observed. */
function isNewerRevision(a: Candidate, b: Candidate): boolean {
  const [left, right] = [a.pod.workload, b.pod.workload];
  if (left === undefined || left.id !== right?.id || left.revision === right.revision) return false;
  return a.pod.createdAt === b.pod.createdAt ? a.order > b.order : a.pod.createdAt > b.pod.createdAt;
}
