import type { DistributedLockStatus, LockCondition, LockWaiter } from '../api/generated/distributedlock.ts';
import { HeldReason, ReadyReason, WaitReason } from '../api/reasons.ts';
import { previousMessage, silentMessage } from './held-message.ts';
import { sameJson } from './json.ts';
import type { LeaseView } from './lease.ts';
import type { LockView } from './lock.ts';
import type { GrantGate } from './observed.ts';
import type { PodView } from './pod.ts';
import { firstEligible, type Waiter } from './queue.ts';
import { type Requests, recordOf } from './requests.ts';
import type { Tenure } from './tenure.ts';
import { parseFencingToken } from './token.ts';

/** `status.queue` lists this many waiters; `status.waiters` counts all. */
const QUEUE_SHOWN = 10;

export interface StatusInput {
  readonly lock: LockView;
  readonly lease: LeaseView | undefined;
  readonly tenure: Tenure | undefined;
  readonly queue: readonly Waiter[];
  /** The live or last seen object of a Pod, by UID. */
  readonly lastSeen: (uid: string) => PodView | undefined;
  readonly gate: GrantGate;
  readonly requests: Requests;
  readonly provisioned: boolean;
  /** Why the last pass could not write, or undefined. */
  readonly failure: string | undefined;
  /** Wall clock, RFC 3339, for people to read. */
  readonly nowText: string;
}

/** What the lock's status should say. Equal to the present status, transition times included, when nothing changed. */
export function lockStatus(input: StatusInput): DistributedLockStatus {
  const { lock, lease, tenure, queue } = input;
  const present = lock.status;
  const held = tenure?.kind === 'held' ? tenure : undefined;
  const keepsHolder = tenure === undefined || tenure.kind === 'previous';
  const granted = lease !== undefined && lease.token !== 0n;
  const lastBreak = recordOf('break', input.requests.break, input);
  const lastHandover = recordOf('handover', input.requests.handover, input);
  return {
    observedGeneration: lock.generation,
    conditions: [readyCondition(input), heldCondition(input)],
    ...(held !== undefined && {
      holder: {
        kind: 'Pod',
        name: held.holder.name,
        uid: held.holder.uid,
        ...(held.holder.node !== undefined && { node: held.holder.node }),
      },
      acquiredTime: lease?.acquireTime ?? '',
    }),
    ...(keepsHolder && present.holder !== undefined && { holder: present.holder }),
    ...(keepsHolder && present.acquiredTime !== undefined && { acquiredTime: present.acquiredTime }),
    ...(granted ? { terms: lease.terms } : present.terms !== undefined && { terms: present.terms }),
    fencingToken: fencingToken(present.fencingToken, lease),
    transitions: Math.max(lease?.transitions ?? 0, present.transitions ?? 0),
    ...(lastBreak !== undefined && { lastBreak }),
    ...(lastHandover !== undefined && { lastHandover }),
    waiters: queue.length,
    queue: queueEntries(input),
  };
}

/** `0` before the first grant; never falls. */
function fencingToken(present: string | undefined, lease: LeaseView | undefined): string {
  const shown = parseFencingToken(present) ?? 0n;
  const current = lease?.token ?? 0n;
  return (current > shown ? current : shown).toString();
}

function readyCondition(input: StatusInput): LockCondition {
  const { lock, lease, gate, provisioned, failure } = input;
  if (lock.deleting) {
    return condition(
      input,
      'Ready',
      'False',
      ReadyReason.Deleting,
      'The lock is being deleted; nobody is granted it any more.',
    );
  }
  if (lease !== undefined && lease.token === undefined) {
    const message = `Lease ${lease.name} carries no valid token: it was written past the admission policy. Delete the lock and create it again.`;
    return condition(input, 'Ready', 'False', ReadyReason.LeaseInvalid, message);
  }
  if (!gate.open) return condition(input, 'Ready', 'False', gate.reason, gate.message);
  if (failure !== undefined) return condition(input, 'Ready', 'False', ReadyReason.WriteFailed, failure);
  if (!provisioned) {
    return condition(input, 'Ready', 'False', ReadyReason.Provisioning, 'Lease, Role and RoleBinding are being made.');
  }
  return condition(input, 'Ready', 'True', ReadyReason.Ready, 'The lock can be granted.');
}

function heldCondition(input: StatusInput): LockCondition {
  const { tenure, lock, lease } = input;
  if (tenure === undefined || tenure.kind === 'previous') {
    const known = lock.status.holder !== undefined || tenure?.kind === 'previous';
    return known
      ? condition(
          input,
          'Held',
          'Unknown',
          HeldReason.PreviousHolder,
          previousMessage(lock, tenure === undefined ? isPodGone(lock) : tenure.until === undefined),
        )
      : condition(input, 'Held', 'False', HeldReason.Free, 'Nobody holds the lock.');
  }
  if (tenure.kind === 'broken') {
    const message = `The grant of Pod ${tenure.holder.name} was broken; nobody is granted the lock until it is stopped.`;
    return condition(input, 'Held', 'Unknown', HeldReason.Broken, message);
  }
  if (tenure.kind !== 'held') return condition(input, 'Held', 'False', HeldReason.Free, 'Nobody holds the lock.');
  if (tenure.silent && lease !== undefined) {
    const message = silentMessage({ lock, lease, pod: input.lastSeen(tenure.holder.uid) });
    return condition(input, 'Held', 'True', HeldReason.HolderSilent, message);
  }
  const who = `Pod ${tenure.holder.name} with token ${lease?.token ?? ''}`;
  if (lease?.yieldAsked !== undefined) {
    const message = `Held by ${who}, which was asked to yield (${lease.yieldAsked}).`;
    return condition(input, 'Held', 'True', HeldReason.YieldAsked, message);
  }
  return tenure.confirmed
    ? condition(input, 'Held', 'True', HeldReason.Confirmed, `Held by ${who}.`)
    : condition(input, 'Held', 'True', HeldReason.Granted, `Granted to ${who}, which has not confirmed yet.`);
}

/** By the terms of its last grant, which stand in the status while the Lease is missing. */
const isPodGone = (lock: LockView): boolean => lock.status.terms?.takeover === 'PodGone';

function condition(
  { lock, nowText }: StatusInput,
  type: 'Ready' | 'Held',
  status: LockCondition['status'],
  reason: ReadyReason | HeldReason,
  message: string,
): LockCondition {
  const present = lock.status.conditions?.find((c) => c.type === type);
  return {
    type,
    status,
    reason,
    message: message.slice(0, 1024),
    lastTransitionTime: present?.status === status ? present.lastTransitionTime : nowText,
    observedGeneration: lock.generation,
  };
}

function queueEntries(input: StatusInput): readonly LockWaiter[] {
  const { lock, queue, tenure, gate } = input;
  const next = firstEligible(queue);
  const entry = ({ pod, obstacle }: Waiter, index: number): LockWaiter => {
    const described = obstacle ?? {
      reason: lock.deleting
        ? WaitReason.LockDeleting
        : !gate.open
          ? WaitReason.GrantsPaused
          : tenure?.kind === 'previous' || tenure?.kind === 'broken'
            ? WaitReason.PreviousHolder
            : WaitReason.Waiting,
      message: `${pod === next ? 'Next' : `Number ${index + 1}`} in line${heldBy(tenure)}.`,
    };
    return {
      kind: 'Pod',
      name: pod.name,
      uid: pod.uid,
      reason: described.reason,
      message: described.message.slice(0, 256),
    };
  };
  return queue.slice(0, QUEUE_SHOWN).map(entry);
}

function heldBy(tenure: Tenure | undefined): string {
  return tenure?.kind === 'held' ? `; Pod ${tenure.holder.name} holds the lock` : '';
}

/** Would writing `status` change anything? */
export const statusDiffers = (lock: LockView, status: DistributedLockStatus): boolean => !sameJson(lock.status, status);
