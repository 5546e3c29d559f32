import { leaseName, SIDECAR_CONTAINER, TOKEN_ANNOTATION, TOKEN_BASE_ANNOTATION } from '../../../src/api/names.ts';
import type { Who } from '../api/objects.ts';
import type { Kubelet } from '../world/kubelet.ts';
import type { Proc } from '../world/machine.ts';
import type { Weather } from '../world/network.ts';
import type { OperatorProcess } from '../world/operator.ts';
import type { PodOnNode } from '../world/pod-on-node.ts';
import { createRandom } from '../world/random.ts';
import { collector, NAMESPACE, type World } from '../world/world.ts';
import { AT_HOLDER, describeFault, type Fault } from './faults.ts';
import { ask, editTerms, rollOut } from './people.ts';
import { drawPod } from './scenario.ts';

const mallory: Who = { kind: 'user', name: 'mallory' };
const podCollector: Who = { kind: 'controller', name: 'pod-garbage-collector' };

/** Schedules the faults of the scenario. */
export function scheduleFaults(world: World): void {
  for (const fault of world.scenario.faults) {
    world.time.at(fault.atMs, () => {
      world.trace.note('fault', () => describeFault(fault));
      inject(world, fault);
    });
  }
}

interface Target {
  readonly pod: PodOnNode;
  readonly kubelet: Kubelet;
}

/** The present holder, or another Pod on a node. */
function aimAtPod(world: World, { aim }: Fault): Target | undefined {
  const all = [...world.podsOnNodes()];
  const lock = world.scenario.locks[Math.floor(aim * 97) % world.scenario.locks.length]?.name ?? '';
  const holder = world.leaseOf(lock)?.spec?.holderIdentity ?? '';
  const held = all.find(({ pod }) => holder !== '' && holder.endsWith(pod.plan.uid));
  if (aim < AT_HOLDER && held !== undefined) return held;
  return all[Math.floor(((aim - AT_HOLDER) / (1 - AT_HOLDER) + 1) * all.length) % Math.max(1, all.length)];
}

function aimAtOperator(world: World, { aim, dice }: Fault): OperatorProcess | undefined {
  const all = [...world.operators.values()];
  const leader = all.find((operator) => operator.isLeading());
  return aim < AT_HOLDER && leader !== undefined ? leader : all[Math.floor(dice * all.length)];
}

function inject(world: World, fault: Fault): void {
  const { time } = world;
  const { forMs, dice, kind } = fault;
  const later = (undo: () => void) => void time.after(forMs, undo);
  const pause = (proc: Proc | undefined) => {
    if (proc === undefined) return;
    proc.pause();
    later(() => proc.resume());
  };
  const disturb = (weather: Weather | undefined, trouble: keyof Weather) => {
    if (weather === undefined) return;
    weather[trouble] += 1;
    later(() => {
      weather[trouble] -= 1;
    });
  };
  const target = aimAtPod(world, fault);
  const operator = aimAtOperator(world, fault);
  switch (kind) {
    case 'pauseSidecar':
      return pause(target?.pod.sidecar?.proc);
    case 'pauseProgram':
      return pause(target?.pod.livingPrograms()[0]?.proc);
    case 'pauseKubelet':
      return pause(target?.kubelet.proc);
    case 'pauseOperator':
      return pause(operator?.proc);
    case 'suspendNode':
      if (target === undefined || target.kubelet.machine.isSuspended) return;
      target.kubelet.machine.suspend();
      return later(() => target.kubelet.machine.resume());
    case 'killSidecar':
      return target === undefined ? undefined : killSidecar(world, target);
    case 'terminateSidecar':
      return target?.pod.sidecar?.terminate();
    case 'killProgram':
      return target?.pod.livingPrograms()[0]?.kill();
    case 'restartKubelet':
      return target?.kubelet.restart(Math.min(forMs, 10_000), dice < 0.7);
    case 'killSidecarAndKubelet': {
      if (target === undefined) return;
      killSidecar(world, target);
      time.after(500 + dice * 8_000, () => target.kubelet.restart(500, true));
      return;
    }
    case 'loseExitRecord':
      return target === undefined ? undefined : loseExitRecord(world, target);
    case 'loseState':
      return target === undefined ? undefined : loseState(world, target, fault);
    case 'makeUpStatus':
      return target === undefined ? undefined : loseState(world, target, fault);
    case 'busyWorker':
      if (target !== undefined) target.pod.busyUntil = Math.max(target.pod.busyUntil, time.now() + forMs);
      return;
    case 'fillVolume': {
      if (target === undefined) return;
      target.pod.files.isFull = true;
      return later(() => {
        target.pod.files.isFull = false;
      });
    }
    case 'cutNode':
      return disturb(target?.kubelet.link.weather, 'cut');
    case 'cutSidecar':
      return disturb(sidecarWeather(target), 'cut');
    case 'failWrites':
      return disturb(sidecarWeather(target), 'writesFail');
    case 'silentSidecar':
      return disturb(sidecarWeather(target), 'silent');
    case 'slowSidecar':
      return disturb(sidecarWeather(target), 'slow');
    case 'slowThenCut': {
      const weather = sidecarWeather(target);
      if (weather === undefined) return;
      weather.slow += 1;
      time.after(5_000 + dice * 25_000, () => {
        weather.slow -= 1;
        disturb(weather, 'cut');
      });
      return;
    }
    case 'lossySidecar':
      return disturb(sidecarWeather(target), 'lossy');
    case 'slowEverywhere':
      return disturb(world.everywhere, 'slow');
    case 'lossyEverywhere':
      return disturb(world.everywhere, 'lossy');
    case 'apiDown':
      return disturb(world.everywhere, dice < 0.5 ? 'cut' : 'silent');
    case 'lagOperator':
      return disturb(operator?.link.weather, 'lag');
    case 'lagSidecar':
      return disturb(sidecarWeather(target), 'lag');
    case 'breakWatches':
      for (const each of world.operators.values()) each.breakWatches(dice < 0.5);
      for (const each of world.kubelets.values()) each.breakWatch(dice < 0.5);
      for (const { pod } of world.podsOnNodes()) pod.sidecar?.breakWatches(dice < 0.5);
      return;
    case 'killOperator':
      return operator === undefined ? undefined : killOperator(world, operator, forMs);
    case 'killOperatorAtWrite':
      return operator === undefined ? undefined : killAtWrite(world, operator, fault);
    case 'twoLeaders': {
      const others = [...world.operators.values()].filter((each) => !each.isLeading());
      for (const each of others) each.lead(true);
      return later(() => electOne(world));
    }
    case 'switchLeader':
      for (const each of world.operators.values()) each.lead(!each.isLeading());
      return electOne(world);
    case 'jumpWall': {
      const jumpMs = (dice - 0.5) * 1_200_000;
      if (fault.aim < 0.5) target?.kubelet.machine.jumpWall(jumpMs);
      else world.machineOf(operator?.proc.name ?? '')?.jumpWall(jumpMs);
      return;
    }
    case 'freezeWall': {
      const machine = target?.kubelet.machine;
      machine?.freezeWall(true);
      return later(() => machine?.freezeWall(false));
    }
    case 'deletePod':
      return target === undefined ? undefined : deletePod(world, target, fault);
    case 'deletePodAndCut': {
      if (target === undefined) return;
      deletePod(world, target, fault);
      time.after(200 + dice * 2_000, () => disturb(sidecarWeather(target), 'cut'));
      return;
    }
    case 'deletePodUnseen': {
      if (target === undefined) return;
      for (const each of world.operators.values()) disturb(each.link.weather, 'lag');
      disturb(sidecarWeather(target), 'cut');
      const lease = world.leaseOf(target.pod.plan.lock)?.spec?.leaseDurationSeconds ?? 15;
      time.after(lease * 1000 * (0.5 + 0.4 * dice), () => world.deletePod(target.pod.plan.name, 60));
      return;
    }
    case 'forceDeletePod':
      return target === undefined ? undefined : world.deletePod(target.pod.plan.name, 0);
    case 'evictPod': {
      if (target === undefined) return;
      patchPodStatus(world, target, (status) => ({ ...status, conditions: disrupted(status) }));
      return deletePod(world, target, fault);
    }
    case 'collectPod':
      return target === undefined ? undefined : collectPod(world, target, fault);
    case 'nodeNotReady': {
      const name = target?.kubelet.machine.name ?? '';
      world.setNodeReady(name, false);
      return later(() => world.setNodeReady(name, true));
    }
    case 'deleteNode':
      return target === undefined ? undefined : deleteNode(world, target.kubelet, fault);
    case 'createPod':
      return createPod(world, fault);
    case 'deleteLock':
      return deleteLock(world, fault);
    case 'deleteLease': {
      const name = leaseName(world.scenario.locks[0]?.name ?? '');
      world.attempt(() => world.store.delete('leases', { namespace: NAMESPACE, name }, { who: collector }));
      return;
    }
    case 'editSpec':
      return editSpec(world, fault);
    case 'forgeWrite':
      return forgeWrite(world, fault);
    case 'raiseBase':
      return raiseBase(world, fault);
    case 'cordonNode': {
      const name = target?.kubelet.machine.name ?? '';
      world.setCordoned(name, true);
      return dice < 0.5 ? later(() => world.setCordoned(name, false)) : undefined;
    }
    case 'rollOut':
      return rollOut(world, fault);
    case 'askBreak':
    case 'askHandover': {
      const lock = world.scenario.locks[Math.floor(dice * world.scenario.locks.length)]?.name ?? '';
      return ask(world, lock, kind === 'askBreak' ? 'break' : 'handover');
    }
    case 'editTerms':
      return editTerms(world, fault);
    case 'breakImage':
      if (target !== undefined) target.pod.badImageUntil = time.now() + forMs;
      return;
    default:
      return kind satisfies never;
  }
}

const sidecarWeather = (target: Target | undefined): Weather | undefined => target?.pod.sidecar?.link.weather;

/** SIGKILL: nothing is cleaned up. */
export function killSidecar(world: World, { pod, kubelet }: Target): void {
  const container = pod.containers.get(SIDECAR_CONTAINER);
  if (pod.sidecar?.proc.alive !== true || container === undefined || container.exit !== undefined) return;
  pod.sidecar.proc.kill();
  container.exit = { code: 137, at: world.time.now() };
  world.checker.sidecarEnded(pod, 137, 'SIGKILL');
  kubelet.wakeSoon(pod);
}

/** The sidecar dies and its exit record is lost, so that it is restarted alone. */
function loseExitRecord(world: World, target: Target): void {
  const container = target.pod.containers.get(SIDECAR_CONTAINER);
  if (container === undefined) return;
  target.pod.lastExcuseAt = world.time.now();
  killSidecar(world, target);
  container.isRecordLost = true;
}

function loseState(world: World, { pod, kubelet }: Target, { kind, dice, forMs }: Fault): void {
  if (pod.isFinished || pod.isTerminating || pod.containers.size === 0) return;
  const isMadeUp = kind === 'makeUpStatus' && pod.plan.restartPolicy === 'Never' && pod.programs.size > 0;
  const madeUp = (['unknown', 'noId', 'noFinish'] as const)[Math.floor(dice * 3)];
  kubelet.loseState(pod, isMadeUp ? madeUp : undefined);
  // Somebody notices the forgotten processes in the end.
  world.time.after(forMs + 15_000, () => {
    for (const program of pod.orphans) program.kill();
    for (const sidecar of pod.orphanSidecars) sidecar.proc.kill();
  });
}

function killOperator(world: World, { proc }: OperatorProcess, downMs: number): void {
  if (!proc.alive) return;
  proc.kill();
  electOne(world);
  world.time.after(downMs, () => {
    world.startOperator(proc.name);
    electOne(world);
  });
}

/** Kills the operator just before, or just after, one of its next writes reaches the API server. */
function killAtWrite(world: World, operator: OperatorProcess, { dice, forMs }: Fault): void {
  let left = Math.floor(dice * 6);
  const stop = world.store.onWriteOf(operator.proc.name, () => {
    left -= 1;
    if (left >= 0) return;
    stop();
    killOperator(world, operator, forMs);
  });
}

/** Somebody leads: the first that lives. */
export function electOne(world: World): void {
  let isElected = false;
  for (const operator of world.operators.values()) {
    const isWanted = !isElected && operator.proc.alive && operator.isLeading();
    if (isWanted) isElected = true;
    else if (operator.proc.alive) operator.lead(false);
  }
  if (isElected) return;
  [...world.operators.values()].find(({ proc }) => proc.alive)?.lead(true);
}

function deletePod(world: World, { pod }: Target, { dice }: Fault): void {
  const { name, graceSeconds } = pod.plan;
  world.deletePod(name, dice < 0.7 ? graceSeconds : Math.max(1, Math.floor(dice * 60)));
}

interface StatusWithConditions {
  readonly conditions?: readonly object[];
}

const disrupted = (status: StatusWithConditions) => [
  ...(status.conditions ?? []),
  { type: 'DisruptionTarget', status: 'True' },
];

function patchPodStatus(world: World, { pod }: Target, change: (status: object) => object): void {
  const target = { namespace: NAMESPACE, name: pod.plan.name, subresource: 'status' as const };
  world.attempt(() =>
    world.store.update('pods', target, (old) => ({ ...old, status: change(old.status ?? {}) as never }), {
      who: podCollector,
      uid: pod.plan.uid,
    }),
  );
}

/** The Pod garbage collector writes a phase over old statuses, and may delete the Pod by force. */
function collectPod(world: World, target: Target, { dice, forMs }: Fault): void {
  patchPodStatus(world, target, (status) => ({
    ...status,
    phase: 'Failed',
    ...(dice < 0.5 && { conditions: disrupted(status) }),
  }));
  if (dice > 0.3) world.time.after(Math.min(forMs, 5_000), () => world.deletePod(target.pod.plan.name, 0));
}

function deleteNode(world: World, { machine, link }: Kubelet, { forMs, dice }: Fault): void {
  const { name } = machine;
  if (dice < 0.6) link.weather.cut += 1;
  world.attempt(() => world.store.delete('nodes', { namespace: undefined, name }, { who: podCollector }));
  world.time.after(2_000 + dice * 5_000, () => {
    for (const pod of world.store.list('pods')) {
      const isThere = (pod.spec as { nodeName?: string } | undefined)?.nodeName === name;
      if (isThere && world.store.get('nodes', undefined, name) === undefined) world.deletePod(pod.metadata.name, 0);
    }
  });
  world.time.after(forMs, () => {
    if (dice < 0.6) link.weather.cut -= 1;
    world.createNode(name);
  });
}

function createPod(world: World, { dice, index }: Fault): void {
  const { scenario } = world;
  const random = createRandom(scenario.seed, `created ${index}`);
  const lock = scenario.locks[Math.floor(dice * scenario.locks.length)]?.name ?? '';
  const wish = drawPod(random, { lock, nodes: scenario.nodes, index: 10 + index, faultyMs: 60_000, isTight: false });
  // Sometimes under the name of one that is gone.
  const name = random.chance(0.4) ? (scenario.pods[0]?.name ?? wish.name) : wish.name;
  world.createPod({ ...wish, name });
}

/** Deleted by force while held, and made again while the old one may still be there. */
function deleteLock(world: World, { dice, forMs }: Fault): void {
  const lock = world.scenario.locks[Math.floor(dice * 97) % world.scenario.locks.length];
  if (lock === undefined) return;
  const target = { namespace: NAMESPACE, name: lock.name };
  const who: Who = { kind: 'user', name: 'alice' };
  world.attempt(() =>
    world.store.update(
      'distributedlocks',
      target,
      (old) => ({
        ...old,
        metadata: { ...old.metadata, annotations: { ...old.metadata.annotations, 'kilit.dev/force-delete': 'true' } },
      }),
      { who },
    ),
  );
  world.attempt(() => world.store.delete('distributedlocks', target, { who }));
  const recreate = () => {
    if (world.store.get('distributedlocks', NAMESPACE, lock.name) === undefined) world.createLock(lock);
    else world.time.after(1_000, recreate);
  };
  world.time.after(Math.min(forMs, 12_000), recreate);
}

function editSpec(world: World, { dice }: Fault): void {
  const lock = world.scenario.locks[0];
  if (lock === undefined) return;
  const leaseDurationSeconds = 5 + Math.floor(dice * 15);
  world.attempt(() =>
    world.store.update(
      'distributedlocks',
      { namespace: NAMESPACE, name: lock.name },
      (old) => ({ ...old, spec: { ...old.spec, leaseDurationSeconds } }),
      { who: { kind: 'user', name: 'alice' } },
    ),
  );
}

/** Somebody with the right to edit Leases and Pods tries what only kilit may do. */
function forgeWrite(world: World, { dice, aim }: Fault): void {
  const lock = world.scenario.locks[0]?.name ?? '';
  const target = { namespace: NAMESPACE, name: leaseName(lock) };
  const holder = world.leaseOf(lock)?.spec?.holderIdentity ?? '';
  // Who may exec into the holder itself can release for it; kilit does not keep that from happening.
  const thief = [...world.podsOnNodes()].map(({ pod }) => pod.plan).findLast(({ uid }) => !holder.endsWith(uid));
  const who: Who =
    aim < 0.5 || thief === undefined
      ? mallory
      : { kind: 'sidecar', name: `forger in ${thief.name}`, podUid: thief.uid };
  const identity = thief === undefined ? 'mallory_0' : `${thief.name}_${thief.uid}`;
  const forged = [
    { holderIdentity: identity },
    { holderIdentity: identity, acquireTime: '2026-01-01T00:00:00.000001Z' },
    { holderIdentity: '' },
    { renewTime: '2030-01-01T00:00:00.000001Z' },
    { leaseDurationSeconds: 3600 },
  ][Math.floor(dice * 7)];
  world.attempt(() =>
    world.store.update(
      'leases',
      target,
      (old) =>
        forged === undefined
          ? {
              ...old,
              metadata: { ...old.metadata, annotations: { ...old.metadata.annotations, [TOKEN_ANNOTATION]: '1' } },
            }
          : { ...old, spec: { ...old.spec, ...forged } },
      { who },
    ),
  );
}

function raiseBase(world: World, { dice }: Fault): void {
  const target = { namespace: undefined, name: 'kilit-system' };
  world.attempt(() =>
    world.store.update(
      'namespaces',
      target,
      (old) => {
        const base = BigInt(old.metadata.annotations?.[TOKEN_BASE_ANNOTATION] ?? '0') + BigInt(Math.floor(dice * 1e6));
        const annotations = { ...old.metadata.annotations, [TOKEN_BASE_ANNOTATION]: String(base) };
        return { ...old, metadata: { ...old.metadata, annotations } };
      },
      { who: { kind: 'user', name: 'alice' } },
    ),
  );
}
