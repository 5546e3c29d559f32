import type { DistributedLock } from '../../api/generated/distributedlock.ts';
import type { RawLease } from '../../core/lease.ts';
import type { RawNode } from '../../core/node.ts';
import type { RawPod } from '../../core/raw-pod.ts';
import type { Read } from '../attempt.ts';
import type { RawNamespace } from '../base/read.ts';
import type { RawEvent } from '../lock/description.ts';
import type { Mark } from '../mark.ts';

/** Everything that the checks look at; what could not be read says why. */
export interface Facts {
  readonly cliVersion: string;
  /** The one namespace that locks, Leases and Pods were read of; undefined: all. */
  readonly namespace: string | undefined;
  readonly server: { readonly major: string; readonly minor: string; readonly gitVersion: string };
  /** Resources of kilit.dev/v1alpha1; not ok: the API server does not serve it. */
  readonly served: Read<readonly string[]>;
  readonly policies: Read<Policies>;
  readonly canary: CanaryFact;
  readonly injection: InjectionFact;
  readonly operator: OperatorFacts;
  readonly nodes: Read<readonly RawNode[]>;
  readonly locks: Read<readonly DistributedLock[]>;
  readonly leases: Read<readonly RawLease[]>;
  /** Those with the label `kilit.dev/lock`. */
  readonly pods: Read<readonly DoctorPod[]>;
  readonly namespaces: Read<readonly RawNamespace[]>;
  /** Grants that were not confirmed, within the time that the cluster keeps events. */
  readonly notConfirmed: Read<readonly RawEvent[]>;
  readonly sidecars: Read<readonly SidecarTrouble[]>;
  /** Namespaces that have a NetworkPolicy on traffic out of Pods, with its name. */
  readonly egressPolicies: Read<readonly { readonly namespace: string; readonly name: string }[]>;
  readonly revision: Read<bigint>;
  /** Of requests to the API server that were measured from here, in milliseconds. */
  readonly latenciesMs: readonly number[];
  readonly marks: readonly Mark[];
}

export interface Policies {
  readonly mutating: readonly string[];
  readonly validating: readonly string[];
  readonly bindings: readonly PolicyBinding[];
}

export interface PolicyBinding {
  readonly name: string;
  readonly policy: string;
  /** Of a validating policy. */
  readonly actions: readonly string[];
  /** Name of the parameter, of `kilit-lease` the operator's Namespace. */
  readonly parameter: string | undefined;
}

/** What the API server did with a Lease that `kilit-lease` must refuse (a dry run). */
export type CanaryFact =
  | { readonly kind: 'enforced' }
  | { readonly kind: 'notEnforced' }
  | { readonly kind: 'unknown'; readonly why: string };

/** What the API server made of a labelled Pod (a dry run). */
export type InjectionFact =
  | { readonly kind: 'injected' }
  /** It would run ungated. */
  | { readonly kind: 'bare' }
  /** The sidecar lacks `restartPolicyRules`: that feature is off in this API server. */
  | { readonly kind: 'dropped' }
  /** No such Pod can be made. */
  | { readonly kind: 'refused'; readonly why: string }
  | { readonly kind: 'unknown'; readonly why: string };

export interface OperatorFacts {
  readonly namespace: Read<string>;
  readonly deployments: Read<readonly RawDeployment[]>;
  /** Its own Lease at the beginning, and seconds later when it had changed or should have. */
  readonly election: Read<{ readonly before: RawLease; readonly after: RawLease; readonly watchedSeconds: number }>;
  readonly base: Read<bigint>;
}

export interface RawDeployment {
  readonly metadata: {
    readonly name: string;
    readonly namespace: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly spec?: { readonly replicas?: number };
  readonly status?: { readonly readyReplicas?: number };
}

interface DoctorContainer {
  readonly name: string;
  readonly restartPolicy?: string;
  readonly ports?: readonly { readonly containerPort?: number; readonly hostPort?: number }[];
}

/** A Pod with what only the checks look at. */
export interface DoctorPod extends RawPod {
  readonly metadata: RawPod['metadata'] & { readonly finalizers?: readonly string[] };
  readonly spec: Omit<RawPod['spec'], 'containers' | 'initContainers'> & {
    readonly hostNetwork?: boolean;
    readonly containers: readonly DoctorContainer[];
    readonly initContainers?: readonly DoctorContainer[];
  };
  readonly status?: Omit<NonNullable<RawPod['status']>, 'conditions'> & {
    /** Why the Pod as a whole failed, such as `NodePorts`. */
    readonly reason?: string;
    readonly conditions?: readonly DoctorCondition[];
  };
}

interface DoctorCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

/** A sidecar that says in its log that it cannot follow its Lease. */
export interface SidecarTrouble {
  readonly namespace: string;
  readonly pod: string;
  readonly says: string;
}

export const podName = ({
  metadata,
}: {
  readonly metadata: { readonly namespace: string; readonly name: string };
}): string => `${metadata.namespace}/${metadata.name}`;

/** Neither ended nor about to start anything. */
export const isLive = (pod: DoctorPod): boolean => pod.status?.phase !== 'Succeeded' && pod.status?.phase !== 'Failed';
