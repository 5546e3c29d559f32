/** Brings together what was seen of a run. */
import { leaseName, TOKEN_ANNOTATION } from '../../src/api/names.ts';
import type { History, LeaseState, StatusState } from './judge/checker.ts';
import { readLives } from './life.ts';
import type { Traffic } from './traffic.ts';

/** Times that a clock wrote; where that clock was wrong by half an hour, when they were seen first. */
function rightTimes(): (time: string | undefined, seenAt: number) => number {
  const seenFirst = new Map<string, number>();
  return (time, seenAt) => {
    if (time === undefined) return 0;
    const written = Date.parse(time);
    if (Math.abs(written - seenAt) < WRONG_MS) return written;
    const first = seenFirst.get(time) ?? seenAt;
    seenFirst.set(time, first);
    return first;
  };
}

const WRONG_MS = 1_800_000;

export async function readHistory({ locks, leases, lockObjects, database, dir }: Traffic): Promise<History> {
  const millis = rightTimes();
  const locksOf = new Map(locks.map((lock) => [leaseName(lock), lock]));
  const leaseStates = leases.seen.flatMap(({ at, object: { metadata, spec = {} }, deleted }): LeaseState[] => {
    const lock = locksOf.get(metadata.name);
    if (lock === undefined) return [];
    return [
      {
        lock,
        revision: BigInt(metadata.resourceVersion),
        holder: spec.holderIdentity ?? '',
        token: BigInt(metadata.annotations?.[TOKEN_ANNOTATION] ?? '0'),
        durationSeconds: spec.leaseDurationSeconds ?? 0,
        acquired: millis(spec.acquireTime, at),
        renewed: millis(spec.renewTime, at),
        deleted,
      },
    ];
  });
  const statuses = lockObjects.seen.map(({ object: { metadata, status } }): StatusState => {
    const { holder } = status ?? {};
    return {
      lock: metadata.name ?? '',
      revision: BigInt(metadata.resourceVersion ?? '0'),
      holder: holder === undefined ? '' : `${holder.name}_${holder.uid}`,
      token: BigInt(status?.fencingToken ?? '0'),
    };
  });
  const [guarded, unguarded, sealed] = await Promise.all(
    (['guarded', 'unguarded', 'sealed'] as const).map((table) => database.rows(table)),
  );
  return {
    leases: leaseStates,
    statuses,
    guarded: guarded ?? [],
    unguarded: unguarded ?? [],
    sealed: sealed ?? [],
    lives: await readLives(dir, locks),
  };
}
