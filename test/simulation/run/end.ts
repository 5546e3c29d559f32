import { LOCK_LABEL, POD_FINALIZER, TOKEN_ANNOTATION, YIELD_ANNOTATION } from '../../../src/api/names.ts';
import { podView } from '../../../src/core/pod.ts';
import type { RawPod } from '../../../src/core/raw-pod.ts';
import { REQUEST_ANNOTATION } from '../../../src/core/requests.ts';
import type { Change } from '../api/store.ts';
import { NAMESPACE, type World } from '../world/world.ts';
import { QUIET_MS } from './scenario.ts';

/** When the cluster has come to rest after the faults. */
export interface Rest {
  /** Whether the run may end: all that is promised for the time after the faults has come true, and nobody writes. */
  isReached(): boolean;
  /** At the end of the time that it may take: fails if it is not so. */
  check(): void;
}

export function watchRest(world: World): Rest {
  const { calmFromMs } = world.scenario;
  let lastChange: Change | undefined;
  world.store.onChange((change) => {
    if (!isRenewal(change)) lastChange = change;
  });
  const missing = () => {
    for (const { name } of world.scenario.locks) {
      const fault = missingAt(world, name);
      if (fault !== undefined) return fault;
    }
    return undefined;
  };
  const isQuiet = () => world.time.now() - Math.max(lastChange?.at ?? 0, calmFromMs) > QUIET_MS;
  return {
    isReached: () => isQuiet() && missing() === undefined,
    check() {
      const fault = missing();
      if (fault !== undefined) return world.checker.fail(fault.invariant, fault.text);
      if (isQuiet() || lastChange === undefined) return;
      const text = `${lastChange.type} ${lastChange.resource} ${lastChange.object.metadata.name} by ${lastChange.who.name}`;
      world.checker.fail('nothing is written for ever', text);
    },
  };
}

const isRenewal = ({ resource, who, type, object, old }: Change): boolean =>
  resource === 'leases' &&
  who.kind === 'sidecar' &&
  type === 'MODIFIED' &&
  object.spec?.holderIdentity === old?.spec?.holderIdentity;

interface Missing {
  readonly invariant: string;
  readonly text: string;
}

const late = (text: string): Missing => ({ invariant: 'a waiter gets the lock in time', text });
const untrue = (text: string): Missing => ({ invariant: 'status and marks name the holder at rest', text });

/** What is not yet as it must be: a waiter holds, and marks and status tell who. */
function missingAt(world: World, name: string): Missing | undefined {
  const lock = world.store.get('distributedlocks', NAMESPACE, name);
  if (lock === undefined) return undefined;
  if (lock.metadata.deletionTimestamp !== undefined) return late(`${name} is still being deleted`);
  const asked = Object.values(REQUEST_ANNOTATION).find((key) => lock.metadata.annotations?.[key] !== undefined);
  if (asked !== undefined) return { invariant: 'a request is carried out, or dropped', text: `${name} has ${asked}` };
  const lease = world.leaseOf(name);
  const holder = lease?.spec?.holderIdentity ?? '';
  const isConfirmed = holder !== '' && lease?.spec?.renewTime !== lease?.spec?.acquireTime;
  const holderUid = holder.slice(holder.lastIndexOf('_') + 1);
  const [waiter] = world.checker.queues.eligible(name).filter(({ uid }) => uid !== holderUid);
  if (!isConfirmed && waiter !== undefined) return late(`${waiter.name} waits for ${name}, held by "${holder}"`);
  const present = world.podOnNode(holderUid)?.pod;
  if (holder !== '' && present === undefined) return late(`${name} is held by ${holder}, which is gone`);
  if (holder !== '' && present?.plan.mode === 'gate' && !present.isFinished && !present.isStarted) {
    return late(`${holder} holds ${name}, and its gate is shut`);
  }
  if (holder !== '' && lease?.metadata.annotations?.[YIELD_ANNOTATION] !== undefined) {
    return { invariant: 'who is asked to yield does', text: `${holder} holds ${name}` };
  }
  const preferred = world.checker.queues.preferred(name, holderUid);
  if (preferred !== undefined)
    return { invariant: 'the lock goes to whom it has to', text: `${preferred}, not ${holder}` };
  const leftOver = leftOn(world, name, { token: lease?.metadata.annotations?.[TOKEN_ANNOTATION], holderUid });
  if (leftOver !== undefined) return leftOver;
  const status = (lock.status ?? {}) as { readonly holder?: { readonly uid: string } };
  if ((status.holder?.uid ?? '') !== holderUid) return untrue(`status "${status.holder?.uid}", Lease "${holderUid}"`);
  for (const raw of world.store.list('pods')) {
    const pod = podView(raw as unknown as RawPod, 0, undefined);
    if (pod.lock !== name || pod.leader === (pod.uid === holderUid)) continue;
    return untrue(`${pod.name}: leader ${pod.leader}, Lease "${holderUid}"`);
  }
  return undefined;
}

/** What an earlier grant left behind. */
function leftOn(
  world: World,
  name: string,
  present: { token: string | undefined; holderUid: string },
): Missing | undefined {
  for (const { pod } of world.podsOnNodes()) {
    if (pod.plan.lock !== name || pod.statesLost > 0) continue;
    const program = pod.livingPrograms().find(({ token }) => token !== undefined && String(token) !== present.token);
    if (program === undefined) continue;
    return { invariant: 'in the end only the holder runs', text: `${program.life} lives with ${program.token}` };
  }
  for (const { metadata } of world.store.list('pods')) {
    const isKept = metadata.finalizers?.includes(POD_FINALIZER) === true && metadata.labels?.[LOCK_LABEL] === name;
    if (!isKept || metadata.uid === present.holderUid) continue;
    return { invariant: 'no finalizer is left behind', text: metadata.name };
  }
  return undefined;
}
