/**
 * Leader election over one Kubernetes Lease.
 *
 * **Not promised:** that at most one process *acts* at every instant. A process that is paused between `isLeader()` and a
 * write wakes up as a former leader and writes; only a fencing token that the written resource checks can stop it. Nor is
 * it promised that leaders stay apart when somebody deletes the Lease under a leader, when clocks run more than 10 % apart,
 * or when a machine is paused in a way that its clocks do not show. No order among waiters is promised either.
 *
 * Promised: while every process answers `isLeader()` from this package and writes with the API server's precondition, no
 * two of them answer `true` at the same instant. No wall clock takes part. After faults have ended somebody leads again,
 * at most about one lease duration and three retry periods later. The Lease is released only after the work has ended.
 *
 * Expected flow: `run` waits; acquires; calls the work; renews; when its signal aborts it tells the work to end, goes on
 * renewing until it has, then releases. When leadership is lost, the work's signal aborts and `run` returns `lost`.
 *
 * ```ts
 * const elector = createLeaderElector({ store, clock: systemClock, random: Math.random, log }, { identity: podUid });
 * while (!signal.aborted) {
 *   await elector.run(signal, async (leading) => work(leading.signal));
 * }
 * ```
 *
 * @module
 */
export { type Clock, systemClock } from './clock.ts';
export {
  createLeaderElector,
  type ElectionOutcome,
  type ElectorDeps,
  type LeaderElector,
} from './elector.ts';
export { ElectionError, type ElectionErrorCode } from './errors.ts';
export { type FencedLease, fencingTokenOf, type OwnTerm } from './fencing-token.ts';
export {
  type ElectionLog,
  type ElectionObserver,
  type ElectionPhase,
  type LeaseRecord,
  type LeaseStore,
  LeaseStoreError,
  type LeaseStoreErrorCode,
  type LossReason,
  type StoredLease,
} from './ports.ts';
export type { ElectionOptions } from './settings.ts';
export type { Lead, Leading } from './work.ts';
