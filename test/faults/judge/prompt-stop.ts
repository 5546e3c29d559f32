/** How long programs ran after their right to run had ended. Pure. No violation: a lease stops nobody at once. */

import type { Life } from '../life.ts';
import type { LeaseState } from './checker.ts';

export interface Overrun {
  readonly lock: string;
  readonly life: string;
  readonly token: bigint;
  /** The end of the lease, by its last renewal; wall clock of this machine, milliseconds since 1970. */
  readonly leaseEnd: number;
  /** How long the program ran after it, in milliseconds; 0 or less: not at all. */
  readonly pastLeaseMs: number;
  /** How long it ran beside the next grant, in milliseconds: the time in which only a guard helps. */
  readonly besideNextMs: number;
}

/** Of every program whose grant has ended before its last line. */
export function overruns(leases: readonly LeaseState[], lives: readonly Life[]): readonly Overrun[] {
  const byLock = Map.groupBy(leases, ({ lock }) => lock);
  return lives.flatMap(({ lock, life, token, to }) => {
    const states = byLock.get(lock) ?? [];
    const own = states.filter((state) => state.token === token && state.holder !== '');
    const last = own.at(-1);
    if (last === undefined) return [];
    const next = states.find((state) => state.token > token && state.holder !== '');
    const leaseEnd = Math.max(...own.map(({ renewed, durationSeconds }) => renewed + durationSeconds * 1000));
    const pastLeaseMs = to - leaseEnd;
    const besideNextMs = next === undefined ? 0 : to - next.acquired;
    if (pastLeaseMs <= 0 && besideNextMs <= 0) return [];
    return [{ lock, life, token, leaseEnd, pastLeaseMs, besideNextMs }];
  });
}
