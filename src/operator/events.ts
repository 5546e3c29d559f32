import { GROUP, KIND, VERSION } from '../api/names.ts';
import { EndReason, EventReason, WaitReason, YieldReason } from '../api/reasons.ts';
import type { Action, AskYield } from '../core/actions.ts';
import { assertNever } from '../core/assert-never.ts';
import type { LockView } from '../core/lock.ts';
import { formatMicroTime } from '../core/micro-time.ts';
import type { PodView } from '../core/pod.ts';
import type { KubeClient } from '../kube/client.ts';
import { collectionPath } from '../kube/paths.ts';
import { type Clock, micros, systemClock } from './clock.ts';
import type { Log } from './log.ts';

interface Told {
  readonly about: { readonly apiVersion: string; readonly kind: string; readonly name: string; readonly uid: string };
  readonly namespace: string;
  readonly type: 'Normal' | 'Warning';
  readonly reason: string;
  readonly action: string;
  readonly note: string;
}

/** What a change of state tells the users of the lock and of the Pod. Renewals, status and provisioning tell nothing. */
export function eventsOf(action: Action): readonly Told[] {
  switch (action.kind) {
    case 'Grant': {
      const { lock, pod, token, ended } = action;
      const after = ended === undefined ? '' : ` after Pod ${ended.holder.name} (${END_TEXT[ended.reason]})`;
      return [
        ...(ended === undefined ? [] : endEvents(lock, ended)),
        onLock(lock, 'Normal', EventReason.Granted, 'Grant', `Granted to Pod ${pod.name} with token ${token}${after}.`),
        onPod(pod, 'Normal', EventReason.Granted, 'Grant', `Was granted lock ${lock.name} with token ${token}.`),
      ];
    }
    case 'Free':
      return endEvents(action.lock, action.ended);
    case 'JoinQueue': {
      const { pod, lock, reason, message } = action;
      const bad =
        reason === WaitReason.LockNotFound || reason === WaitReason.NotInjected || reason === EventReason.Lost;
      return [
        onPod(pod, bad ? 'Warning' : 'Normal', reason, 'Queue', message),
        ...(lock !== undefined && (reason === EventReason.Lost || reason === EventReason.Yielded)
          ? [
              onLock(
                lock,
                'Normal',
                reason,
                'Lose',
                `Pod ${pod.name} ${reason === EventReason.Lost ? 'lost' : 'yielded'} the lock (token ${pod.token ?? ''}).`,
              ),
            ]
          : []),
      ];
    }
    case 'AskYield':
      return yieldEvents(action);
    case 'Break': {
      const { lock, lease, token, holder, request } = action;
      const note = `${request.by} broke the grant of Pod ${holder.name} (token ${lease.token ?? ''}, now ${token}): ${request.reason}. Nobody is granted the lock until that Pod is stopped.`;
      return [onLock(lock, 'Warning', EventReason.Broken, 'Break', note)];
    }
    case 'DropRequest': {
      const { lock, request, why } = action;
      if (why === undefined) return [];
      const note = `The request kilit.dev/${request} was taken off and not carried out. ${why}`;
      return [onLock(lock, 'Warning', EventReason.RequestDropped, 'Drop', note)];
    }
    case 'DeleteLease':
      return action.lease.holder === undefined
        ? []
        : endEvents(action.lock, { holder: action.lease.holder, reason: EndReason.LockDeleted });
    case 'RefreshLease':
    case 'AddFinalizer':
    case 'RemoveFinalizer':
    case 'PutRole':
    case 'PutRoleBinding':
    case 'CreateLease':
    case 'AdoptLease':
    case 'MarkHolder':
    case 'Unmark':
    case 'AddPodFinalizer':
    case 'RemovePodFinalizer':
    case 'WriteStatus':
      return [];
    default:
      return assertNever(action);
  }
}

function yieldEvents({ lock, lease, holder, reason, by, request }: AskYield): Told[] {
  const who = `Pod ${holder.name} (token ${lease.token ?? ''})`;
  if (request !== undefined) {
    const note = `${request.by} asked ${who} to hand the lock over: ${request.reason}`;
    return [onLock(lock, 'Normal', EventReason.HandedOver, 'Yield', note)];
  }
  const note = `${who} was asked to yield (${reason}): ${YIELD_TEXT[reason]}${by === undefined ? '' : `, for Pod ${by.name}`}.`;
  return [
    onLock(lock, reason === YieldReason.NotStarted ? 'Warning' : 'Normal', EventReason.YieldAsked, 'Yield', note),
  ];
}

const YIELD_TEXT: Readonly<Record<YieldReason, string>> = {
  [YieldReason.NewerRevision]: 'a newer version of its workload waits',
  [YieldReason.NodeDrain]: 'its node is cordoned',
  [YieldReason.NotStarted]: 'no program of it has been running for startDeadlineSeconds',
  [YieldReason.MaxHold]: 'it has held for maxHoldSeconds',
  [YieldReason.Requested]: 'an administrator asked for it',
};

const END_TEXT: Readonly<Record<EndReason, string>> = {
  [EndReason.ConfirmedDeath]: 'its programs have ended',
  [EndReason.Expired]: 'did not renew in time',
  [EndReason.NotConfirmed]: 'did not confirm the grant in time; no program was started',
  [EndReason.LockDeleted]: 'is stopped, because the lock is being deleted',
  [EndReason.Broken]: 'its grant was broken',
};

function endEvents(
  lock: LockView,
  ended: { readonly holder: { readonly name: string }; readonly reason: EndReason },
): Told[] {
  // Told when it was broken.
  if (ended.reason === EndReason.Broken) return [];
  const normal = ended.reason === EndReason.ConfirmedDeath;
  return [
    onLock(
      lock,
      normal ? 'Normal' : 'Warning',
      ended.reason,
      'Lose',
      `Pod ${ended.holder.name}: ${END_TEXT[ended.reason]}.`,
    ),
  ];
}

const onLock = (lock: LockView, type: Told['type'], reason: string, action: string, note: string): Told => ({
  about: { apiVersion: `${GROUP}/${VERSION}`, kind: KIND, name: lock.name, uid: lock.uid },
  namespace: lock.namespace,
  type,
  reason,
  action,
  note,
});

const onPod = (pod: PodView, type: Told['type'], reason: string, action: string, note: string): Told => ({
  about: { apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid },
  namespace: pod.namespace,
  type,
  reason,
  action,
  note,
});

/** Events in flight at a time; more are dropped and counted. */
const MOST_IN_FLIGHT = 200;

/** Tells events without making anybody wait: a lost event loses nothing but a line for people. */
export function createEventTeller(deps: {
  readonly client: KubeClient;
  readonly log: Log;
  readonly instance: string;
  readonly dropped: () => void;
  readonly clock?: Pick<Clock, 'wallMicroseconds'>;
}): (action: Action) => void {
  const { clock = systemClock } = deps;
  let inFlight = 0;
  return (action) => {
    for (const told of eventsOf(action)) {
      if (inFlight >= MOST_IN_FLIGHT) {
        deps.dropped();
        continue;
      }
      inFlight += 1;
      deps.client
        .request({
          verb: 'POST',
          path: collectionPath('events', told.namespace),
          body: eventObject(told, deps.instance, micros(clock)),
        })
        .catch((err: unknown) => {
          deps.dropped();
          deps.log.debug({ err, reason: told.reason }, 'Could not write event');
        })
        .finally(() => {
          inFlight -= 1;
        });
    }
  };
}

function eventObject(told: Told, instance: string, time: bigint) {
  return {
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: {
      name: `${told.about.name.slice(0, 200)}.${time.toString(16)}${told.reason.toLowerCase()}`,
      namespace: told.namespace,
    },
    eventTime: formatMicroTime(time),
    reportingController: 'kilit.dev/operator',
    reportingInstance: instance.slice(0, 128),
    action: told.action,
    reason: told.reason,
    type: told.type,
    note: told.note.slice(0, 1000),
    regarding: { ...told.about, namespace: told.namespace },
  };
}
