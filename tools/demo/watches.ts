/** Follows the lock, its Lease, its Pods, the operator's Lease and what the programs print; keeps a `Sight`. */
import type { DistributedLock } from '../../src/api/generated/distributedlock.ts';
import { GROUP, LOCK_LABEL, leaseName, OPERATOR_LEASE, PLURAL, VERSION } from '../../src/api/names.ts';
import type { RawLease } from '../../src/core/lease.ts';
import type { RawPod } from '../../src/core/raw-pod.ts';
import type { Cluster } from '../cluster/index.ts';
import { sleep } from '../cluster/progress.ts';
import { type Printed, parsePrinted } from './history.ts';
import { kubectlLines } from './kubectl-lines.ts';
import { LOCK, NAMESPACE, PROGRAM } from './objects.ts';
import { OPERATOR_NAMESPACE } from './operator.ts';
import { programOf, programRuns, type Sight } from './sight.ts';

/** Between the end of a watch and the next; also between two tries to follow a log. */
const AGAIN_MILLISECONDS = 300;

export interface Watches extends AsyncDisposable {
  sight(): Sight;
  /** All that the programs have printed, in the order in which it was read. */
  history(): readonly Printed[];
  setFrozen(uid: string, frozen: boolean): void;
  /** Calls `listener` after each change; returns the end of it. */
  onChange(listener: () => void): () => void;
}

interface WatchEvent<Thing> {
  readonly type: string;
  readonly object: Thing;
}

const PATHS = {
  lock: `/apis/${GROUP}/${VERSION}/namespaces/${NAMESPACE}/${PLURAL}?watch=1&fieldSelector=metadata.name%3D${LOCK}`,
  lease: `/apis/coordination.k8s.io/v1/namespaces/${NAMESPACE}/leases?watch=1&fieldSelector=metadata.name%3D${leaseName(LOCK)}`,
  election: `/apis/coordination.k8s.io/v1/namespaces/${OPERATOR_NAMESPACE}/leases?watch=1&fieldSelector=metadata.name%3D${OPERATOR_LEASE}`,
  pods: `/api/v1/namespaces/${NAMESPACE}/pods?watch=1&labelSelector=${encodeURIComponent(`${LOCK_LABEL}=${LOCK}`)}`,
} as const;

/** Neither an error of the watch nor a line that was cut off by its end is an object. */
function parseEvent<Thing>(line: string): WatchEvent<Thing> | undefined {
  try {
    const event = JSON.parse(line) as WatchEvent<Thing>;
    return ['ADDED', 'MODIFIED', 'DELETED'].includes(event.type) ? event : undefined;
  } catch {
    return undefined;
  }
}

export function startWatches(cluster: Cluster): Watches {
  const stop = new AbortController();
  const { signal } = stop;
  const listeners = new Set<() => void>();
  const pods = new Map<string, RawPod>();
  const printed = new Map<string, string>();
  const history = new Map<string, Printed>();
  const frozen = new Set<string>();
  const followed = new Set<string>();
  const work: Promise<void>[] = [];
  let one: Pick<Sight, 'lock' | 'lease' | 'election'> = { lock: undefined, lease: undefined, election: undefined };

  const changed = (): void => {
    for (const listener of listeners) listener();
  };

  /** A watch without a start version tells everything that is there first, so that each new one catches up. */
  async function watch<Thing>(path: string, take: (event: WatchEvent<Thing>) => void, reset = () => {}): Promise<void> {
    while (!signal.aborted) {
      reset();
      await kubectlLines(cluster, ['get', '--raw', path], {
        signal,
        onLine: (line) => {
          const event = parseEvent<Thing>(line);
          if (event === undefined) return;
          take(event);
          changed();
        },
      });
      if (!signal.aborted) await sleep(AGAIN_MILLISECONDS);
    }
  }

  function takePod({ type, object: pod }: WatchEvent<RawPod>): void {
    if (type === 'DELETED') pods.delete(pod.metadata.uid);
    else pods.set(pod.metadata.uid, pod);
    const container = programOf(pod)?.containerID;
    if (!programRuns(pod) || container === undefined || followed.has(container)) return;
    followed.add(container);
    work.push(follow(pod, container));
  }

  /** Reads what one container prints until it has ended; a line that is read twice counts once. */
  async function follow(pod: RawPod, container: string): Promise<void> {
    const { name, uid } = pod.metadata;
    const runsStill = (): boolean => {
      const now = pods.get(uid);
      return now !== undefined && programRuns(now) && programOf(now)?.containerID === container;
    };
    do {
      await kubectlLines(cluster, ['logs', '-f', '--timestamps', '-n', NAMESPACE, name, '-c', PROGRAM], {
        signal,
        onLine: (line) => {
          const found = parsePrinted(line, { uid, pod: name });
          if (found === undefined) return;
          history.set(`${uid} ${line}`, found);
          printed.set(uid, found.token.toString());
          changed();
        },
      });
      if (!signal.aborted) await sleep(AGAIN_MILLISECONDS);
    } while (!signal.aborted && runsStill());
  }

  work.push(
    watch<DistributedLock>(PATHS.lock, ({ object }) => {
      one = { ...one, lock: object };
    }),
    watch<RawLease>(PATHS.lease, ({ object }) => {
      one = { ...one, lease: object };
    }),
    watch<RawLease>(PATHS.election, ({ object }) => {
      one = { ...one, election: object };
    }),
    watch<RawPod>(PATHS.pods, takePod, () => pods.clear()),
  );

  return {
    sight: () => ({ ...one, pods: [...pods.values()], printed, frozen }),
    history: () => [...history.values()],
    setFrozen: (uid, is) => {
      if (is) frozen.add(uid);
      else frozen.delete(uid);
      changed();
    },
    onChange: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await Promise.all(work);
    },
  };
}
