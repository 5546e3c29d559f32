import { IDLE_EXIT_CODE, RESET_CONTAINER, SIDECAR_CONTAINER } from '../api/names.ts';
import { gatedInitContainers, type RawContainerStatus, type RawPod } from './raw-pod.ts';

/**
 * Is every program of this Pod certainly dead?
 *
 * Only the kubelet can know, so the statement must be the kubelet's own and complete: condition `ContainersReady` False
 * because of `PodCompleted` or `PodFailed`, which it writes when the phase that it reckons with is terminal and nothing
 * will be restarted; the sidecar terminated; every program terminated or never started. It holds the phase itself back
 * for one to two seconds more (docs/kubernetes.md), so that is not waited for.
 *
 * Of programs that were killed for a restart in place the kubelet forgets the end, and makes `ContainerStatusUnknown` of
 * it when the Pod ends behind its gate (docs/kubernetes.md): `isForgotten`. The statuses of `kilit-reset` and the sidecar
 * are complete then, and their exit codes may say as much by themselves: `isBehindGate`.
 *
 * Everything else proves nothing: the Pod garbage collector may write a phase over old statuses; after containerd lost
 * its state the kubelet makes up `ContainerStatusUnknown` for a process that lives; a deletionTimestamp, a 404, an
 * eviction or a lost node say what somebody wishes, not what happened. (kubernetes-facts.md, "Is the holder certainly dead?")
 */
export function isConfirmedDead(pod: RawPod): boolean {
  const { status } = pod;
  if (status === undefined) return false;
  const ready = status.conditions?.find((c) => c.type === 'ContainersReady');
  if (ready?.status !== 'False' || (ready.reason !== 'PodCompleted' && ready.reason !== 'PodFailed')) return false;

  if (isBehindGate(status.initContainerStatuses ?? [])) return true;
  const sidecar = status.initContainerStatuses?.find((c) => c.name === SIDECAR_CONTAINER);
  if (sidecar === undefined || !hasEnded(sidecar)) return false;
  return (
    pod.spec.containers.every((c) => endedOrNeverStarted(c.name, status.containerStatuses)) &&
    gatedInitContainers(pod).every((c) => endedOrNeverStarted(c.name, status.initContainerStatuses))
  );
}

/**
 * Did this Pod's last life end before any of its programs was given a token?
 *
 * `kilit-reset` runs only after all earlier programs were killed. If it failed, no sidecar came after it; if the sidecar
 * ended with `IDLE_EXIT_CODE`, it had found the mark of `kilit-reset` and never wrote a token.
 */
function isBehindGate(inits: readonly RawContainerStatus[]): boolean {
  const codeOf = (name: string) => {
    const status = inits.find((c) => c.name === name);
    return status !== undefined && hasEnded(status) ? status.state?.terminated?.exitCode : undefined;
  };
  const reset = codeOf(RESET_CONTAINER);
  return (reset !== undefined && reset !== 0) || codeOf(SIDECAR_CONTAINER) === IDLE_EXIT_CODE;
}

function endedOrNeverStarted(name: string, statuses: readonly RawContainerStatus[] | undefined): boolean {
  const status = statuses?.find((c) => c.name === name);
  return status !== undefined && (hasEnded(status) || neverStarted(status) || isForgotten(status));
}

/**
 * Killed and removed for a restart in place, and not started again before the Pod ended.
 *
 * Told from a container that lives on unseen only by the sidecar: who loses containerd's records loses the sidecar's too,
 * so its end must be complete wherever this counts.
 */
function isForgotten(status: RawContainerStatus): boolean {
  const end = status.state?.terminated;
  return (
    end?.reason === 'ContainerStatusUnknown' &&
    (end.containerID ?? '') === '' &&
    status.lastState?.terminated?.reason === 'RestartingAllContainers'
  );
}

function hasEnded(status: RawContainerStatus): boolean {
  const end = status.state?.terminated;
  return (
    end !== undefined &&
    (end.containerID ?? '') !== '' &&
    (end.finishedAt ?? '') !== '' &&
    end.reason !== 'ContainerStatusUnknown'
  );
}

function neverStarted(status: RawContainerStatus): boolean {
  return (
    status.state?.waiting !== undefined &&
    (status.containerID ?? '') === '' &&
    (status.restartCount ?? 0) === 0 &&
    status.lastState?.terminated === undefined
  );
}
