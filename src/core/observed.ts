import type { ReadyReason } from '../api/reasons.ts';
import type { Action } from './actions.ts';
import type { Instant, LeaseView } from './lease.ts';
import type { LockView } from './lock.ts';
import type { NodeView } from './node.ts';
import type { PodView } from './pod.ts';
import type { FencingToken } from './token.ts';

/** What this process remembers of a time when the cluster's revision was greater: etcd was restored since. */
export interface RevisionFall {
  /** The highest revision seen before. */
  readonly from: bigint;
  /** The revision at which the cluster came back. */
  readonly to: bigint;
  /** No token above this one can have been issued before. */
  readonly issued: FencingToken;
}

/** May grants be given at all? Open only while the token rule is known to be enforced. */
export type GrantGate =
  | {
      readonly open: true;
      readonly base: bigint;
      readonly fall?: RevisionFall;
      /** The cluster has reached this revision at least. */
      readonly revision?: bigint;
      /** The greatest token seen in the cluster: what a token base must be above. */
      readonly highestToken?: FencingToken;
    }
  | { readonly open: false; readonly reason: ReadyReason; readonly message: string };

/** Everything that one pass over a lock looks at. */
export interface Observed {
  readonly lock: LockView | undefined;
  readonly lease: LeaseView | undefined;
  /** Since when this process has known that there is no Lease. */
  readonly leaseAbsentSince: Instant;
  readonly roles: { readonly role: boolean; readonly roleBinding: boolean };
  /** The Pods of the namespace that carry the lock's label, in the order in which they were first observed. */
  readonly pods: readonly PodView[];
  /** The live or last seen object of a Pod, by UID. */
  readonly lastSeen: (uid: string) => PodView | undefined;
  readonly nodes: ReadonlyMap<string, NodeView>;
  readonly gate: GrantGate;
  /** Why the last pass over this lock could not write, or undefined. */
  readonly failure: string | undefined;
}

export interface Now {
  /** Monotonic, for durations. */
  readonly instant: Instant;
  /** Wall clock in microseconds since 1970: orders the queue and is shown to people, and decides nothing else. */
  readonly micros: bigint;
}

export interface Decision {
  readonly actions: readonly Action[];
  /** When to decide again although nothing has changed. */
  readonly recheckAt: Instant | undefined;
}

/** Wall-clock microseconds as RFC 3339 with whole seconds, as conditions carry it. */
export function secondsText(micros: bigint): string {
  return `${new Date(Number(micros / 1000n)).toISOString().slice(0, 19)}Z`;
}
