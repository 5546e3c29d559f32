import { SIDECAR_CONTAINER } from '../api/names.ts';

/** The part of a Pod, as the API server serves it, that decisions read. */
export interface RawPod {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly creationTimestamp?: string;
    readonly deletionTimestamp?: string;
    readonly deletionGracePeriodSeconds?: number;
    readonly finalizers?: readonly string[];
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly ownerReferences?: readonly {
      readonly kind: string;
      readonly name: string;
      readonly uid?: string;
      readonly controller?: boolean;
    }[];
  };
  readonly spec: {
    readonly nodeName?: string;
    readonly terminationGracePeriodSeconds?: number;
    readonly containers: readonly RawContainer[];
    readonly initContainers?: readonly RawContainer[];
  };
  readonly status?: {
    readonly phase?: string;
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason?: string }[];
    readonly containerStatuses?: readonly RawContainerStatus[];
    readonly initContainerStatuses?: readonly RawContainerStatus[];
  };
}

interface RawContainer {
  readonly name: string;
  readonly restartPolicy?: string;
}

export interface RawContainerStatus {
  readonly name: string;
  readonly restartCount?: number;
  readonly containerID?: string;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly running?: object;
    readonly terminated?: {
      readonly reason?: string;
      readonly exitCode?: number;
      readonly containerID?: string;
      readonly finishedAt?: string;
    };
  };
  readonly lastState?: { readonly terminated?: { readonly reason?: string } };
}

/** The init containers after the sidecar: they see the token, so they are programs too. */
export function gatedInitContainers(pod: RawPod): readonly RawContainer[] {
  const inits = pod.spec.initContainers ?? [];
  const at = inits.findIndex((c) => c.name === SIDECAR_CONTAINER);
  return at < 0 ? [] : inits.slice(at + 1);
}
