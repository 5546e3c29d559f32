/** One fault from its beginning to the moment when its lock is calm again. */
import { rm } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Failpoint, World } from './failpoints/failpoint.ts';
import { runVolume } from './failpoints/run-volume.ts';
import type { Random } from './random.ts';
import { DELAY_SECONDS, type Holder, LEASE_SECONDS } from './traffic.ts';

/** A lock's share of a fault. Times are the wall clock of this machine, milliseconds since 1970. */
export interface Fault {
  readonly failpoint: string;
  readonly lock: string;
  readonly from: number;
  /** When its cause was gone. */
  readonly healed: number;
  /** When the lock was calm again: a working holder, all others waiting. Absent if that took too long. */
  readonly calm?: number;
  /** When the first write with a newer token was accepted; absent if the holder kept the lock. */
  readonly nextWrite?: number;
  /** Average load of the machine's last minute when the fault began. */
  readonly load: number;
  /** What was missing, if it did not become calm. */
  readonly fault?: string;
}

/** When faults stop a waiter gets the lock: after this many seconds at the latest, on a loaded machine. */
export const CALM_SECONDS = 180;

export interface Inflict extends World {
  readonly random: Random;
  readonly locks: readonly string[];
}

/** Waits until the locks are calm, inflicts the fault on all of them, ends it, and waits until they are calm again. */
export async function inflict(failpoint: Failpoint, { random, locks, ...world }: Inflict): Promise<readonly Fault[]> {
  const { traffic } = world;
  const holders = new Map<string, Holder>();
  for (const lock of locks) holders.set(lock, await traffic.calm(lock, { forMs: 0, seconds: CALM_SECONDS }));
  for (const lock of locks) await forgetLosses(world, lock);
  const seconds = secondsOf(failpoint, random);
  const load = loadavg()[0] ?? 0;
  const from = Date.now();
  const [lock = ''] = locks;
  const holder = holders.get(lock);
  if (holder === undefined) throw new Error('No lock to disturb');
  const heal =
    failpoint.level === 'pod'
      ? await failpoint.inflict({ ...world, random, lock, holder })
      : await failpoint.inflict({ ...world, random, holders });
  try {
    await sleep(seconds * 1000);
  } finally {
    await heal();
  }
  const healed = Date.now();
  return Promise.all(
    locks.map(async (lock): Promise<Fault> => {
      const begun = { failpoint: failpoint.name, lock, from, healed, load };
      const outcome = await traffic.calm(lock, { from: healed, seconds: CALM_SECONDS }).then(
        ({ since }) => ({ calm: since }),
        (error: Error) => ({ fault: error.message }),
      );
      const next = await traffic.database.firstAfter(lock, holders.get(lock)?.token ?? 0n);
      return { ...begun, ...outcome, ...(next !== undefined && { nextWrite: next.at }) };
    }),
  );
}

function secondsOf({ lasts }: Failpoint, random: Random): number {
  switch (lasts) {
    case 'no-time':
      return 0;
    case 'over-lease':
      return LEASE_SECONDS + random.between(1, 12);
    case 'over-next-grant':
      return LEASE_SECONDS + DELAY_SECONDS + random.between(4, 6);
    case 'over-its-lease':
      return random.between(18, 25);
    case 'over-a-minute':
      return random.between(62, 75);
    default:
      return lasts satisfies never;
  }
}

/** A Pod that lost its lock often is slow to come back; each fault shall be the first, or a run would be all waiting. */
async function forgetLosses({ cluster, traffic }: World, lock: string): Promise<void> {
  for (const { metadata, spec } of traffic.podsOf(lock)) {
    await rm(join(runVolume(cluster, spec.nodeName ?? '', metadata.uid), 'losses'), { force: true });
  }
}
