import { ReadyReason } from '../../../src/api/reasons.ts';
import type { Action } from '../../../src/core/actions.ts';
import type { GrantGate, Now, Observed } from '../../../src/core/observed.ts';
import { createBehindCheck } from '../../../src/operator/behind-check.ts';
import { type Caches, cachesSynced, createCaches } from '../../../src/operator/caches.ts';
import { createCanary } from '../../../src/operator/canary.ts';
import { type Clock, now } from '../../../src/operator/clock.ts';
import { createHolderCheck } from '../../../src/operator/holder-check.ts';
import { createIssuedTokens } from '../../../src/operator/issued-tokens.ts';
import { type LockKey, Observer } from '../../../src/operator/observe.ts';
import { startPasses } from '../../../src/operator/passes.ts';
import { createReconciler } from '../../../src/operator/reconcile.ts';
import type { Workqueue } from '../../../src/operator/workqueue.ts';
import { createWriter } from '../../../src/operator/writer.ts';
import { createOperatorClient } from '../api/operator-client.ts';
import type { Store } from '../api/store.ts';
import type { Proc } from './machine.ts';
import type { Link } from './network.ts';
import type { Random } from './random.ts';
import { Reflector } from './reflector.ts';
import { QUIET } from './sidecar.ts';

export interface OperatorProcess {
  readonly proc: Proc;
  readonly link: Link;
  readonly isLeading: () => boolean;
  /** Starts or ends passes; the election itself is simulated in test/leader-election. */
  readonly lead: (isLeading: boolean) => void;
  readonly breakWatches: (expired: boolean) => void;
  readonly observe: (key: LockKey) => Observed;
  readonly now: () => Now;
}

const LABELLED = new Set(['leases', 'pods', 'roles', 'rolebindings']);

/** One replica of the real operator on a simulated machine: caches, passes, writer, holder check and canary. */
export function startOperator(deps: {
  readonly proc: Proc;
  readonly link: Link;
  readonly store: Store;
  readonly random: Random;
  readonly namespace: string;
  readonly staleLists: boolean;
  readonly passed: (key: LockKey, observed: Observed, now: Now) => void;
  readonly done: (action: Action) => void;
}): OperatorProcess {
  const { proc, link, store, random, namespace, staleLists } = deps;
  const clock = operatorClock(proc);
  const client = createOperatorClient({
    proc,
    link,
    store,
    who: { kind: 'operator', name: proc.name, podUid: `uid-${proc.name}` },
  });
  const caches = createCaches(namespace, clock);
  let queue: Workqueue | undefined;
  let leading: AbortController | undefined;
  const all = () => {
    for (const key of observer.keys()) queue?.add(key);
  };
  const observer = new Observer(caches, (key) => queue?.add(key), clock);
  const canary = createCanary({ client, namespace, log: QUIET, clock, checked: () => {}, gateChanged: all });
  caches.tokenBase.onChange(all);
  const issued = createIssuedTokens({ caches, log: QUIET, wentBack: all });
  const gate = (): GrantGate => {
    const open = canary.gate();
    if (!open.open) return open;
    const [base] = [...caches.tokenBase.entries()].map((entry) => entry.view);
    return base === undefined
      ? { open: false, reason: ReadyReason.TokenBaseInvalid, message: 'no base' }
      : { open: true, base, ...issued.known() };
  };
  const observed = observer.observe.bind(observer);
  const observe: typeof observed = (key, context) => {
    const seen = observed(key, context);
    deps.passed(key, seen, now(clock));
    return seen;
  };
  const checkHolder = createHolderCheck({ client, caches });
  const checkBehind = createBehindCheck({ client, caches, namespace });
  const reconcile = createReconciler({
    observer: { observe },
    gate,
    check: async (action) => {
      await checkHolder(action);
      await checkBehind(action);
    },
    write: createWriter({ client, caches, clock }),
    done: deps.done,
    log: QUIET,
    clock,
  });
  const lead = (isLeading: boolean) => {
    if (isLeading === (leading !== undefined)) return;
    leading?.abort();
    leading = undefined;
    queue = undefined;
    if (!isLeading) return;
    leading = new AbortController();
    queue = startPasses({ reconcile, workers: 8, clock, random: random.next }, leading.signal);
    all();
  };
  let wish = false;
  let isReady = false;
  const begin = async (): Promise<void> => {
    await canary.start(new AbortController().signal);
    isReady = true;
    lead(wish);
  };
  const reflectors = startCaches({ proc, link, store, random, staleLists }, caches, () => void begin());
  return {
    proc,
    link,
    isLeading: () => proc.alive && wish,
    lead: (isLeading) =>
      proc.deliver(() => {
        wish = isLeading;
        if (isReady) lead(isLeading);
      }),
    breakWatches: (expired) => {
      for (const reflector of reflectors) reflector.break(expired);
    },
    observe: (key) => observed(key, { gate: gate(), failure: undefined }),
    now: () => now(clock),
  };
}

function startCaches(
  deps: Pick<Parameters<typeof startOperator>[0], 'proc' | 'link' | 'store' | 'random' | 'staleLists'>,
  caches: Caches,
  synced: () => void,
): Reflector[] {
  let isSynced = false;
  const feeds = {
    pods: caches.pods,
    nodes: caches.nodes,
    namespaces: caches.tokenBase,
    leases: caches.leases,
    roles: caches.roles,
    rolebindings: caches.roleBindings,
    distributedlocks: caches.locks,
  } as const;
  const reflectors = Object.entries(feeds).map(([resource, any]) => {
    const cache = any as unknown as typeof caches.leases;
    const reflector = new Reflector({
      ...deps,
      resource: resource as keyof typeof feeds,
      path: `/api/v1/${resource}`,
      ...(LABELLED.has(resource) && { wants: (object) => object.metadata.labels?.['kilit.dev/lock'] !== undefined }),
      listed: (items, revision) => {
        cache.takeList(items as never, revision);
        if (isSynced || !cachesSynced(caches)) return;
        isSynced = true;
        synced();
      },
      changed: ({ type, object }) => {
        if (type === 'DELETED') cache.remove(object as never);
        else cache.put(object as never);
      },
    });
    reflector.start();
    return reflector;
  });
  return reflectors;
}

function operatorClock({ machine, setTimer }: Proc): Clock {
  return {
    monotonicSeconds: () => machine.monotonicMs() / 1000,
    bootSeconds: () => machine.bootMs() / 1000,
    wallMicroseconds: () => machine.wallMicros(),
    setTimer: (seconds, fire) => setTimer(seconds * 1000, fire),
  };
}
