import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { EndReason, YieldReason } from '../api/reasons.ts';
import type { CanaryResult } from './canary.ts';

/** All metrics of the operator, series initialised to 0. Labels come from closed sets; a token is never a value. */
export function createMetrics() {
  const registers = [new Registry()];
  const registry = registers[0] as Registry;
  collectDefaultMetrics({ register: registry });

  const grants = new Counter({ name: 'kilit_grants_total', help: 'Grants written.', registers });
  const ends = new Counter({
    name: 'kilit_grant_ends_total',
    help: 'Grants that the operator ended, by what it saw.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of Object.values(EndReason)) ends.inc({ reason }, 0);
  const yields = new Counter({
    name: 'kilit_yields_asked_total',
    help: 'Holders that were asked to yield, by reason.',
    labelNames: ['reason'],
    registers,
  });
  for (const reason of Object.values(YieldReason)) yields.inc({ reason }, 0);
  const passes = new Counter({
    name: 'kilit_reconcile_total',
    help: 'Passes over a lock: ok, conflict (decided anew) or error.',
    labelNames: ['result'],
    registers,
  });
  for (const result of ['ok', 'conflict', 'error'] as const) passes.inc({ result }, 0);
  const passSeconds = new Histogram({
    name: 'kilit_reconcile_seconds',
    help: 'Duration of one pass over a lock, its writes included.',
    buckets: [0.001, 0.005, 0.025, 0.1, 0.5, 1, 5],
    registers,
  });
  const requests = new Counter({
    name: 'kilit_api_requests_total',
    help: 'Requests to the API server, watches left out.',
    labelNames: ['verb', 'code'],
    registers,
  });
  const requestSeconds = new Histogram({
    name: 'kilit_api_request_seconds',
    help: 'Duration of requests to the API server.',
    labelNames: ['verb'],
    buckets: [0.005, 0.025, 0.1, 0.5, 1, 5, 10],
    registers,
  });
  const canary = new Counter({
    name: 'kilit_canary_checks_total',
    help: 'Dry runs that the Lease policy must refuse, by result.',
    labelNames: ['result'],
    registers,
  });
  for (const result of ['enforced', 'notEnforced', 'unknown'] satisfies CanaryResult[]) canary.inc({ result }, 0);
  const eventsDropped = new Counter({
    name: 'kilit_events_dropped_total',
    help: 'Events that could not be written.',
    registers,
  });

  return { registry, grants, ends, yields, passes, passSeconds, requests, requestSeconds, canary, eventsDropped };
}

export type Metrics = ReturnType<typeof createMetrics>;

/** Gauges that are read when they are scraped. */
export function observeGauges(
  registry: Registry,
  read: () => {
    locks: number;
    held: number;
    waiters: number;
    leader: boolean;
    gateOpen: boolean;
    behind: number;
    queueDepth: number;
  },
): void {
  const gauge = (name: string, help: string, value: (state: ReturnType<typeof read>) => number) =>
    new Gauge({
      name,
      help,
      registers: [registry],
      collect() {
        this.set(value(read()));
      },
    });
  gauge('kilit_locks', 'DistributedLocks in the cluster.', (state) => state.locks);
  gauge('kilit_locks_held', 'Locks that a Pod holds.', (state) => state.held);
  gauge('kilit_waiters', 'Pods in the queues of all locks.', (state) => state.waiters);
  gauge('kilit_leader', '1 in the replica that grants, else 0.', (state) => (state.leader ? 1 : 0));
  gauge('kilit_grant_gate_open', '1 while the token rule is known to be enforced, else 0.', (state) =>
    state.gateOpen ? 1 : 0,
  );
  gauge(
    'kilit_locks_behind',
    'Locks that are not granted since the revision of the cluster is behind a token issued before: raise the token base.',
    (state) => state.behind,
  );
  gauge('kilit_queue_depth', 'Locks that wait for a pass of the operator.', (state) => state.queueDepth);
}
