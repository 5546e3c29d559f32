import {
  LEADER_LABEL,
  LOCK_LABEL,
  NOT_STARTED_ANNOTATION,
  QUEUED_AT_ANNOTATION,
  RESET_CONTAINER,
  SIDECAR_CONTAINER,
  TOKEN_ANNOTATION,
} from '../api/names.ts';
import { isConfirmedDead } from './death.ts';
import type { Instant } from './lease.ts';
import { type Progress, progressOf } from './progress.ts';
import { gatedInitContainers, type RawPod } from './raw-pod.ts';
import { type Workload, workloadOf } from './workload.ts';

/** What the operator keeps of a Pod: small, and all that a decision may look at. */
export interface PodView {
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly lock: string;
  readonly createdAt: string;
  readonly node: string | undefined;
  readonly deleting: boolean;
  readonly finalizers: readonly string[];
  readonly phase: string;
  /** A taint manager, preemption or eviction has begun to end it. */
  readonly disrupted: boolean;
  readonly injected: boolean;
  readonly token: string | undefined;
  readonly leader: boolean;
  readonly queuedAt: bigint | undefined;
  /** The longest its programs may live once it is being deleted, in seconds. */
  readonly graceSeconds: number;
  /** Containers that the kubelet kills one after another: programs, later init containers, the sidecar. */
  readonly containers: number;
  readonly sidecarRunning: boolean;
  /** What the kubelet says of a sidecar that does not run, or of `kilit-reset` before it: such as `ImagePullBackOff`. */
  readonly sidecarWaiting: string | undefined;
  readonly confirmedDead: boolean;
  readonly workload: Workload | undefined;
  readonly progress: Progress;
  /** The token of its last grant, if no program of it started under that. */
  readonly notStarted: string | undefined;
}

/**
 * Reduces a Pod to what decisions read. Pure; missing fields take the API server's defaults.
 *
 * `now` is this process's monotonic clock, `previous` what it made of the Pod before: since when programs run, and the
 * longest grace period that the Pod was deleted with, since a second deletion may shorten it, from then on.
 */
export function podView(pod: RawPod, now: Instant, previous: PodView | undefined): PodView {
  const { metadata, spec, status } = pod;
  const stateOf = (name: string) => status?.initContainerStatuses?.find((c) => c.name === name)?.state;
  const queuedAt = metadata.annotations?.[QUEUED_AT_ANNOTATION];
  return {
    name: metadata.name,
    namespace: metadata.namespace,
    uid: metadata.uid,
    resourceVersion: metadata.resourceVersion,
    lock: metadata.labels?.[LOCK_LABEL] ?? '',
    createdAt: metadata.creationTimestamp ?? '',
    node: spec.nodeName,
    deleting: metadata.deletionTimestamp !== undefined,
    finalizers: metadata.finalizers ?? [],
    phase: status?.phase ?? 'Pending',
    disrupted: status?.conditions?.some((c) => c.type === 'DisruptionTarget' && c.status === 'True') ?? false,
    injected: isInjected(pod),
    token: metadata.annotations?.[TOKEN_ANNOTATION],
    leader: metadata.labels?.[LEADER_LABEL] !== undefined,
    queuedAt: queuedAt !== undefined && /^[0-9]{1,18}$/.test(queuedAt) ? BigInt(queuedAt) : undefined,
    graceSeconds: Math.max(
      spec.terminationGracePeriodSeconds ?? 30,
      metadata.deletionGracePeriodSeconds ?? 0,
      previous?.graceSeconds ?? 0,
    ),
    containers: spec.containers.length + gatedInitContainers(pod).length + 1,
    sidecarRunning: stateOf(SIDECAR_CONTAINER)?.running !== undefined,
    // Until kilit-reset has ended the kubelet says `PodInitializing` of the sidecar, whatever keeps kilit-reset.
    sidecarWaiting: (stateOf(RESET_CONTAINER)?.waiting ?? stateOf(SIDECAR_CONTAINER)?.waiting)?.reason,
    confirmedDead: isConfirmedDead(pod),
    workload: workloadOf(pod),
    progress: progressOf(pod, now, previous?.progress),
    notStarted: metadata.annotations?.[NOT_STARTED_ANNOTATION],
  };
}

function isInjected(pod: RawPod): boolean {
  const inits = pod.spec.initContainers ?? [];
  return (
    inits.some((c) => c.name === RESET_CONTAINER) &&
    inits.some((c) => c.name === SIDECAR_CONTAINER && c.restartPolicy === 'Always')
  );
}
