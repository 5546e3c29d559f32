import { EndReason, ReadyReason } from '../api/reasons.ts';
import type { Action } from '../core/actions.ts';
import type { GrantGate } from '../core/observed.ts';
import type { KubeClient } from '../kube/client.ts';
import type { KubeConfig } from '../kube/config.ts';
import { createLeaderElector } from '../leader-election/index.ts';
import { createBehindCheck } from './behind-check.ts';
import { type Caches, cachesSynced, runCaches } from './caches.ts';
import { type Canary, createCanary } from './canary.ts';
import { type Clock, systemClock } from './clock.ts';
import type { OperatorConfig } from './config.ts';
import { createElectionStore } from './election-store.ts';
import { createEventTeller } from './events.ts';
import { createHolderCheck } from './holder-check.ts';
import { createIssuedTokens, type IssuedTokens } from './issued-tokens.ts';
import type { Log } from './log.ts';
import { type Metrics, observeGauges } from './metrics.ts';
import { type LockKey, Observer } from './observe.ts';
import { startPasses } from './passes.ts';
import { createReconciler, type PassResult } from './reconcile.ts';
import { startServer } from './server.ts';
import type { Workqueue } from './workqueue.ts';
import { createWriter, type Writer } from './writer.ts';

export interface OperatorDeps {
  readonly config: OperatorConfig;
  readonly kubeConfig: KubeConfig;
  readonly client: KubeClient;
  readonly caches: Caches;
  readonly metrics: Metrics;
  readonly log: Log;
  /** @default the clocks of this machine */
  readonly clock?: Clock;
  /** Replaced by tests that crash at a write. */
  readonly createWriter?: typeof createWriter;
}

/** Timings of the operator's own election: a replica takes over at most about 12 s after the leader was killed. */
const ELECTION = { leaseDurationSeconds: 10, renewDeadlineSeconds: 7, retryPeriodSeconds: 1.5, stopTimeoutSeconds: 15 };

/**
 * Keeps the caches, answers probes, and grants while elected, until `signal` aborts.
 *
 * Every replica fills its caches and watches the leases age, so a new leader grants at once what has already expired.
 * Safety does not rest on the election: two leaders would be refused by the revisions of their writes.
 */
export async function runOperator(deps: OperatorDeps, signal: AbortSignal): Promise<void> {
  const { config, client, caches, metrics, log, clock = systemClock } = deps;
  let queue: Workqueue | undefined;
  const observer = new Observer(caches, (key) => queue?.add(key), clock);
  const canary = createCanary({
    client,
    namespace: config.namespace,
    log,
    clock,
    checked: (result) => metrics.canary.inc({ result }),
    gateChanged: () => {
      for (const key of observer.keys()) queue?.add(key);
    },
  });
  const everyLock = () => {
    for (const key of observer.keys()) queue?.add(key);
  };
  const issued = createIssuedTokens({ caches, log, wentBack: everyLock });
  const gate = (): GrantGate => openGate(canary, caches, issued);
  caches.tokenBase.onChange(everyLock);
  const elector = createLeaderElector(
    {
      store: createElectionStore(client, config.namespace),
      clock,
      random: Math.random,
      log,
    },
    { identity: `${config.podName}_${config.podUid}_${process.pid}`, ...ELECTION },
  );
  observeGauges(metrics.registry, () => ({
    ...count(caches),
    leader: elector.isLeader(),
    gateOpen: gate().open,
    behind: issued.locksBehind(gate()),
    queueDepth: queue?.depth() ?? 0,
  }));
  const server = await startServer({
    port: config.port,
    registry: metrics.registry,
    isReady: () => cachesSynced(caches),
  });
  try {
    await runCaches(caches, { config: deps.kubeConfig, client, log }, signal);
    log.info({ locks: caches.locks.size, pods: caches.pods.size }, 'Filled caches');
    // In every replica, so that a new leader need not wait for it, and the metric says the same everywhere.
    await canary.start(signal);
    const write = (deps.createWriter ?? createWriter)({ client, caches, clock });
    while (!signal.aborted) {
      const outcome = await elector.run(signal, async (leading) => {
        queue = startQueue({ ...deps, clock, observer, gate, write }, leading.signal);
        for (const key of observer.keys()) queue.add(key);
        await queue.stopped;
        queue = undefined;
      });
      log.info({ outcome: outcome.kind }, 'Ended leadership');
    }
  } catch (err) {
    if (!signal.aborted) throw err;
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

function startQueue(
  deps: OperatorDeps & { readonly observer: Observer; readonly gate: () => GrantGate; readonly write: Writer },
  signal: AbortSignal,
): Workqueue {
  const { metrics, log } = deps;
  const tell = createEventTeller({
    client: deps.client,
    log,
    instance: deps.config.podName,
    ...(deps.clock !== undefined && { clock: deps.clock }),
    dropped: () => metrics.eventsDropped.inc(),
  });
  const checkHolder = createHolderCheck(deps);
  const checkBehind = createBehindCheck({ ...deps, namespace: deps.config.namespace });
  const reconcile = createReconciler({
    ...deps,
    check: async (action) => {
      await checkHolder(action);
      await checkBehind(action);
    },
    done: (action) => {
      countAction(metrics, action);
      tell(action);
    },
  });
  const measured = async (key: LockKey, signal: AbortSignal): Promise<PassResult> => {
    const end = metrics.passSeconds.startTimer();
    const pass = await reconcile(key, signal);
    end();
    metrics.passes.inc({ result: pass.result });
    return pass;
  };
  return startPasses({ ...deps, reconcile: measured, workers: deps.config.workers }, signal);
}

function countAction(metrics: Metrics, action: Action): void {
  if (action.kind === 'DeleteLease' && action.lease.holder !== undefined) {
    metrics.ends.inc({ reason: EndReason.LockDeleted });
  }
  if (action.kind === 'Grant') metrics.grants.inc();
  if (action.kind === 'AskYield') metrics.yields.inc({ reason: action.reason });
  if ((action.kind === 'Grant' || action.kind === 'Free') && action.ended !== undefined) {
    metrics.ends.inc({ reason: action.ended.reason });
  }
}

function openGate(canary: Canary, caches: Caches, issued: IssuedTokens): GrantGate {
  const gate = canary.gate();
  if (!gate.open) return gate;
  const [base] = [...caches.tokenBase.entries()].map((entry) => entry.view);
  if (base === undefined) {
    return {
      open: false,
      reason: ReadyReason.TokenBaseInvalid,
      message:
        'Annotation kilit.dev/token-base of the namespace of the operator is not a decimal integer below 10^16. Correct it.',
    };
  }
  return { open: true, base, ...issued.known() };
}

function count(caches: Caches): { locks: number; held: number; waiters: number } {
  let held = 0;
  let waiters = 0;
  for (const { view } of caches.leases.entries()) if (view.holder !== undefined) held += 1;
  for (const { view } of caches.locks.entries()) waiters += view.status.waiters ?? 0;
  return { locks: caches.locks.size, held, waiters };
}
