/** What a failpoint is. */
import type { Cluster } from '../../../tools/cluster/index.ts';
import type { Kube } from '../../support/kube.ts';
import type { Random } from '../random.ts';
import type { Holder, Traffic } from '../traffic.ts';

export interface World {
  readonly cluster: Cluster;
  readonly kube: Kube;
  readonly traffic: Traffic;
}

/** A fault of one lock. Several of different locks happen at the same time. */
export interface PodFault extends World {
  readonly lock: string;
  readonly holder: Holder;
  readonly random: Random;
}

/** A fault of a node or of the whole cluster; nothing else happens meanwhile. */
export interface ClusterFault extends World {
  readonly holders: ReadonlyMap<string, Holder>;
  readonly random: Random;
}

/** Ends the fault. Returns when its cause is gone, not when its effects are. */
export type Heal = () => Promise<unknown>;

/**
 * How long a fault lasts: until shortly after the lease, or until after the next grant (`over-lease`), or surely the latter
 * (`over-next-grant`); long enough for the
 * garbage collection of Pods without a node (`over-a-minute`), or for another operator to take over (`over-its-lease`).
 */
export type Lasts = 'no-time' | 'over-lease' | 'over-next-grant' | 'over-its-lease' | 'over-a-minute';

interface Common {
  readonly name: string;
  readonly lasts: Lasts;
}

export type Failpoint =
  | (Common & { readonly level: 'pod'; readonly inflict: (fault: PodFault) => Promise<Heal> })
  | (Common & { readonly level: 'cluster'; readonly inflict: (fault: ClusterFault) => Promise<Heal> });

export const nothingToHeal: Heal = async () => {};
