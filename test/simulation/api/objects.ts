/** Objects of the simulated API server: plain JSON, never changed in place. */
export interface Obj {
  readonly kind?: string;
  readonly metadata: Meta;
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: Readonly<Record<string, unknown>>;
  readonly rules?: unknown;
  readonly subjects?: unknown;
}

export interface Meta {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
  readonly generation?: number;
  readonly creationTimestamp?: string;
  readonly deletionTimestamp?: string;
  readonly deletionGracePeriodSeconds?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly finalizers?: readonly string[];
  readonly ownerReferences?: readonly {
    readonly kind: string;
    readonly uid: string;
    readonly name: string;
    readonly controller?: boolean;
  }[];
}

export const RESOURCES = [
  'pods',
  'nodes',
  'namespaces',
  'leases',
  'roles',
  'rolebindings',
  'distributedlocks',
] as const;
export type Resource = (typeof RESOURCES)[number];

/** Who sends a request, as the API server's authentication knows it. */
export interface Who {
  readonly kind: 'operator' | 'sidecar' | 'kubelet' | 'collector' | 'controller' | 'user';
  readonly name: string;
  /** Of a token that is bound to a Pod. */
  readonly podUid?: string;
}

/** An answer that says no. */
export class Refusal extends Error {
  readonly status: number;
  readonly reason: string;

  constructor(status: number, reason: string, message: string) {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

export const keyOf = (namespace: string | undefined, name: string): string => `${namespace ?? ''}/${name}`;
