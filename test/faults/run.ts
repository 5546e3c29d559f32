/** A run: rounds of Pod-level faults, one on each lock, in turn with faults of a node or the cluster, until time is over. */

import type { Failpoint, World } from './failpoints/failpoint.ts';
import { FAILPOINTS } from './failpoints/index.ts';
import { type Fault, inflict } from './inflict.ts';
import { bag, type Random, seeded } from './random.ts';

export interface RunOptions {
  readonly world: World;
  readonly random: Random;
  readonly failpoints: readonly Failpoint[];
  readonly minutes: number;
  readonly say: (line: string) => void;
  /** Stops after the fault that is going on. */
  readonly signal: AbortSignal;
  /** Told each fault as soon as it is over. */
  readonly onFault: (fault: Fault) => void;
}

/** Each fault of a Pod is wanted so many times as often as each one of a node or the cluster. */
const PODS_PER_CLUSTER = 4;

/** @throws Error for a name that is no failpoint's */
export function failpointsOf(names: readonly string[]): readonly Failpoint[] {
  return names.map((name) => {
    const found = FAILPOINTS.find((failpoint) => failpoint.name === name);
    if (found === undefined) {
      throw new Error(`No failpoint '${name}'; there are:\n${FAILPOINTS.map((each) => `  ${each.name}`).join('\n')}`);
    }
    return found;
  });
}

export async function runFaults(options: RunOptions): Promise<readonly Fault[]> {
  const { world, random, failpoints, say, signal, onFault } = options;
  const { traffic } = world;
  const faults: Fault[] = [];
  const until = performance.now() + options.minutes * 60_000;
  const pods = failpoints.filter(({ level }) => level === 'pod');
  const clusters = failpoints.filter(({ level }) => level === 'cluster');
  const nextPod = bag(pods, random);
  const nextCluster = bag(clusters, random);
  const goesOn = (): boolean => performance.now() < until && !signal.aborted;

  const one = async (failpoint: Failpoint, locks: readonly string[]): Promise<void> => {
    // Of its own, so that the choices do not depend on which of several faults is faster.
    const own = seeded(random.between(0, 2 ** 31 - 1));
    for (const fault of await inflict(failpoint, { ...world, random: own, locks })) {
      faults.push(fault);
      onFault(fault);
      const after = (at: number | undefined): string =>
        at === undefined ? '–' : `${((at - fault.from) / 1000).toFixed(1)} s`;
      say(
        fault.fault === undefined
          ? `ok     ${fault.lock}: ${failpoint.name}: next write ${after(fault.nextWrite)}, calm ${after(fault.calm)}`
          : `STUCK  ${fault.lock}: ${failpoint.name}: ${fault.fault}`,
      );
    }
  };
  const podRound = (): Promise<unknown> => Promise.all(traffic.locks.map((lock) => one(nextPod(), [lock])));

  say('wait   for every lock to have a holder');
  await Promise.all(traffic.locks.map((lock) => traffic.calm(lock, { seconds: 300 })));
  const share = pods.length === 0 ? 1 : (clusters.length * traffic.locks.length) / (PODS_PER_CLUSTER * pods.length);
  let due = 0;
  do {
    if (pods.length > 0) await podRound();
    for (due += share; due >= 1 && goesOn(); due -= 1) await one(nextCluster(), traffic.locks);
  } while (goesOn());
  return faults;
}
