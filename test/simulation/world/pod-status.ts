import { RESET_CONTAINER, SIDECAR_CONTAINER } from '../../../src/api/names.ts';
import type { RawContainerStatus, RawPod } from '../../../src/core/raw-pod.ts';
import { gatedNames, INJECTED, type PodOnNode } from './pod-on-node.ts';

/** The status that a kubelet writes of a Pod. */
export function podStatus(pod: PodOnNode): NonNullable<RawPod['status']> {
  const { plan } = pod;
  const apps = plan.programs.map((_, index) => `app-${index}`);
  const gated = gatedNames(plan);
  const inits = [...INJECTED, ...gated.filter((name) => name === 'migrate')];
  const failed = pod.madeUp !== undefined || gated.some((name) => (pod.ended(name)?.code ?? 0) !== 0);
  const ready = pod.isStarted && !pod.isFinished && apps.every((name) => pod.isRunning(name));
  const begun = apps.some((name) => pod.containers.has(name) || pod.restarts.has(name));
  const end = failed ? 'Failed' : 'Succeeded';
  const reason = pod.isFinished ? (failed ? 'PodFailed' : 'PodCompleted') : 'ContainersNotReady';
  return {
    phase: pod.showsEnd ? end : begun ? 'Running' : 'Pending',
    conditions: [
      ready ? { type: 'ContainersReady', status: 'True' } : { type: 'ContainersReady', status: 'False', reason },
    ],
    initContainerStatuses: inits.map((name) => containerStatus(pod, name)),
    containerStatuses: apps.map((name) => containerStatus(pod, name)),
  };
}

function containerStatus(pod: PodOnNode, name: string): RawContainerStatus {
  const restartCount = pod.restarts.get(name) ?? 0;
  const container = pod.containers.get(name);
  const base = { name, restartCount, ...(container !== undefined && { containerID: container.id }) };
  if (pod.madeUp !== undefined && container === undefined) return { name, restartCount, state: madeUpState(pod) };
  if (container === undefined && restartCount > 0 && pod.isFinished && pod.statesLost === 0)
    return forgotten(name, restartCount);
  if (container === undefined || container.isRecordLost) {
    const lastState = restartCount > 0 ? { lastState: { terminated: {} } } : {};
    return { name, restartCount, state: { waiting: { reason: waitingReason(pod, name) } }, ...lastState };
  }
  if (container.exit === undefined) return { ...base, state: { running: {} } };
  const terminated = {
    reason: container.exit.code === 0 ? 'Completed' : 'Error',
    containerID: container.id,
    exitCode: container.exit.code,
    finishedAt: `t${container.exit.at}`,
  };
  return { ...base, state: { terminated } };
}

/** Seen on 1.36.3: killed for a restart in place, and not started again before the Pod ended. */
function forgotten(name: string, restartCount: number): RawContainerStatus {
  const lastState = { terminated: { reason: 'RestartingAllContainers' } };
  return {
    name,
    restartCount,
    state: { terminated: { reason: 'ContainerStatusUnknown', containerID: '' } },
    lastState,
  };
}

function madeUpState(pod: PodOnNode): NonNullable<RawContainerStatus['state']> {
  switch (pod.madeUp) {
    case 'noId':
      return { terminated: { reason: 'Error', finishedAt: 'made up' } };
    case 'noFinish':
      return { terminated: { reason: 'Error', containerID: 'containerd://old' } };
    default:
      return {
        terminated: { reason: 'ContainerStatusUnknown', containerID: 'containerd://old', finishedAt: 'made up' },
      };
  }
}

function waitingReason(pod: PodOnNode, name: string): string {
  if (name === RESET_CONTAINER || name === SIDECAR_CONTAINER) return 'PodInitializing';
  return pod.isStarted ? 'CreateContainerConfigError' : 'PodInitializing';
}
