import type { LeaseView } from './lease.ts';
import type { LockView } from './lock.ts';
import type { PodView } from './pod.ts';

/** Why a lock does not pass on although nothing is heard of its holder, and what to do. */
export function silentMessage(input: {
  readonly lock: LockView;
  readonly lease: LeaseView;
  /** The holder's Pod, live or as last seen; `undefined`: its object is gone, and nobody saw its end. */
  readonly pod: PodView | undefined;
}): string {
  const { lock, lease, pod } = input;
  const { name = '', node } = lease.holder ?? {};
  const where = node === undefined || node === '' ? 'its node' : `node ${node}`;
  const who = `Held by Pod ${name} with token ${lease.token ?? ''}, which does not renew any more; its program may be alive.`;
  if (lease.terms.takeover === 'Lease') {
    return `${who} By onRenewalFailure ContinueFenced it may renew again; the next waiter that is ready is granted the lock at once.`;
  }
  return [
    who,
    `By takeover PodGone the lock waits until the kubelet of ${where} has reported the end of that Pod.`,
    advice(pod, where),
    breakAdvice(lock, where),
  ].join(' ');
}

/** The same for a lock whose Lease was deleted under its holder. */
export function previousMessage(lock: LockView, untilDeath: boolean): string {
  if (!untilDeath) return 'An earlier holder may still be alive; its lease has to run out first.';
  const { name, node } = lock.status.holder ?? {};
  const where = node === undefined || node === '' ? 'its node' : `node ${node}`;
  return [
    `The Lease was deleted while ${name === undefined ? 'a Pod' : `Pod ${name}`} held the lock, by takeover PodGone:`,
    `nobody is granted it before the kubelet of ${where} has reported the end of that Pod. Delete the Pod.`,
    breakAdvice(lock, where),
  ].join(' ');
}

function advice(pod: PodView | undefined, where: string): string {
  if (pod === undefined) return 'The object of that Pod is gone without such a report.';
  return pod.deleting
    ? 'The Pod is being deleted; until then its object stays (finalizer kilit.dev/holder).'
    : `Bring ${where} back, or delete the Pod.`;
}

const breakAdvice = (lock: LockView, where: string): string =>
  `If ${where} is gone for good, make sure that it is switched off, then run: kilit break ${lock.name} -n ${lock.namespace}`;
