import type { RawPod } from './raw-pod.ts';

/** What made a Pod, and from which version of its template. */
export interface Workload {
  /** The same for all Pods of one Deployment, StatefulSet or DaemonSet of the namespace. */
  readonly id: string;
  /** Differs between versions of the template; says nothing of their order. */
  readonly revision: string;
}

const TEMPLATE_HASH_LABEL = 'pod-template-hash';
const CONTROLLER_HASH_LABEL = 'controller-revision-hash';

/**
 * The workload that controls a Pod, or undefined: a bare Pod, a Job, a controller that kilit does not know.
 *
 * Read from the Pod alone, so that the operator needs no right to read ReplicaSets: those of a Deployment are named
 * `<deployment>-<pod-template-hash>`. A ReplicaSet without a Deployment gives its Pods no such label.
 */
export function workloadOf({ metadata }: RawPod): Workload | undefined {
  const controller = metadata.ownerReferences?.find((owner) => owner.controller === true);
  if (controller === undefined) return undefined;
  switch (controller.kind) {
    case 'ReplicaSet': {
      const revision = metadata.labels?.[TEMPLATE_HASH_LABEL] ?? '';
      if (revision === '' || !controller.name.endsWith(`-${revision}`)) return undefined;
      return { id: `Deployment/${controller.name.slice(0, -revision.length - 1)}`, revision };
    }
    case 'StatefulSet':
    case 'DaemonSet': {
      const revision = metadata.labels?.[CONTROLLER_HASH_LABEL] ?? '';
      if (revision === '' || controller.uid === undefined) return undefined;
      return { id: `${controller.kind}/${controller.uid}`, revision };
    }
    default:
      return undefined;
  }
}
