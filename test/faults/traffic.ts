/** Several locks, each with a Deployment of contenders that write into the history under it, and all that is seen of them. */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from 'esbuild';
import type { DistributedLock } from '../../src/api/generated/distributedlock.ts';
import { leaseName, TOKEN_ANNOTATION } from '../../src/api/names.ts';
import type { RawLease } from '../../src/core/lease.ts';
import type { RawPod } from '../../src/core/raw-pod.ts';
import { type Cluster, type ClusterNode, TEST_IMAGE } from '../../tools/cluster/index.ts';
import { credentials, type Kube } from '../support/kube.ts';
import { gatedPod } from '../support/scene.ts';
import { waitFor } from '../support/wait.ts';
import { type HistoryDatabase, openHistoryDatabase } from './database.ts';
import { HISTORY_DIR } from './names.ts';
import { type Watch, watchAll } from './watch.ts';

/** The shortest lease, so that a run has room for many faults. */
export const LEASE_SECONDS = 5;
export const DELAY_SECONDS = 5;
const GRACE_SECONDS = 5;

export interface TrafficOptions {
  readonly cluster: Cluster;
  readonly kube: Kube;
  readonly locks: number;
  /** Of each lock. */
  readonly contenders: number;
  readonly guard: 'on' | 'off';
}

/** The holder of a lock, whose program writes. */
export interface Holder {
  readonly pod: string;
  readonly uid: string;
  readonly token: bigint;
  readonly node: ClusterNode;
}

/** A holder writes every 200 ms, if the machine has time. */
const FRESH_MS = 2000;
/** It renews every third of its lease; less than the time for which it must be calm. */
const FRESH_LEASE_MS = 3500;

/** On the namespaces of traffic. */
const TRAFFIC_LABEL = 'kilit-faults';

/** Ends the traffic of runs that died. */
export async function endLeftTraffic(kube: Kube): Promise<void> {
  const { items } = await kube.must('GET', `/api/v1/namespaces?labelSelector=${TRAFFIC_LABEL}`);
  for (const { metadata } of items as { metadata: { name: string } }[]) await endNamespace(kube, metadata.name);
}

/** The same holder, writing, and all others waiting, for this long: more than a kubelet takes to notice a dead sidecar. */
const CALM_FOR_MS = 4000;

export interface Traffic extends AsyncDisposable {
  readonly namespace: string;
  readonly locks: readonly string[];
  /** Folder of this machine with the lines of the programs, a file for each lock. */
  readonly dir: string;
  readonly database: HistoryDatabase;
  readonly leases: Watch<RawLease>;
  readonly pods: Watch<RawPod>;
  readonly lockObjects: Watch<DistributedLock>;
  podsOf(lock: string): readonly RawPod[];
  /**
   * Waits until the lock is calm, for `forMs` milliseconds: a holder whose writes are accepted, and all other contenders wait and
   * could be granted it. All that is true after `from`, a wall clock in milliseconds; tells since when it is.
   *
   * `forMs` is 4 s by default.
   *
   * @throws Error that says what is missing
   */
  calm(
    lock: string,
    wanted: { readonly from?: number; readonly forMs?: number; readonly seconds: number },
  ): Promise<Holder & { readonly since: number }>;
}

export async function openTraffic({ cluster, kube, ...options }: TrafficOptions): Promise<Traffic> {
  await using stack = new AsyncDisposableStack();
  const locks = Array.from({ length: options.locks }, (_, index) => `lock${index + 1}`);
  const dir = await mkdtemp(join(tmpdir(), 'kilit-faults-'));
  await chmod(dir, 0o755);
  stack.defer(() => rm(dir, { recursive: true, force: true }));
  await bundleProgram(join(dir, 'program.mjs'));
  const host = new URL(credentials(kube.kubeconfig).server).hostname;
  const database = stack.use(await openHistoryDatabase({ host, locks, guard: options.guard }));
  const { name: namespace } = await kube.namespace('faults', { [TRAFFIC_LABEL]: options.guard });
  stack.defer(() => endNamespace(kube, namespace));

  const collection = (api: string, kind: string): string => `${api}/namespaces/${namespace}/${kind}`;
  const leases = stack.use(watchAll<RawLease>(kube.kubeconfig, collection('/apis/coordination.k8s.io/v1', 'leases')));
  const pods = stack.use(watchAll<RawPod>(kube.kubeconfig, collection('/api/v1', 'pods')));
  const locksPath = collection('/apis/kilit.dev/v1alpha1', 'distributedlocks');
  const lockObjects = stack.use(watchAll<DistributedLock>(kube.kubeconfig, locksPath));
  for (const lock of locks) {
    await kube.must('POST', locksPath, {
      body: {
        apiVersion: 'kilit.dev/v1alpha1',
        kind: 'DistributedLock',
        metadata: { name: lock },
        spec: { leaseDurationSeconds: LEASE_SECONDS, takeoverDelaySeconds: DELAY_SECONDS },
      },
    });
    await kube.must('POST', collection('/apis/apps/v1', 'deployments'), {
      body: deployment(lock, { dir, replicas: options.contenders, url: database.url, guard: options.guard }),
    });
  }

  const podsOf = (lock: string): readonly RawPod[] =>
    [...pods.now.values()].filter((pod) => pod.metadata.labels?.['kilit.dev/lock'] === lock);
  /** The holder if the lock is calm, else what is missing. */
  const look = async (lock: string, since: number): Promise<Holder | string> => {
    const lease = leases.now.get(leaseName(lock));
    const identity = lease?.spec?.holderIdentity ?? '';
    if (identity === '') return 'nobody holds it';
    const pod = identity.slice(0, identity.lastIndexOf('_'));
    const uid = identity.slice(identity.lastIndexOf('_') + 1);
    const token = lease?.metadata.annotations?.[TOKEN_ANNOTATION] ?? '0';
    const renewedAt = Date.parse(lease?.spec?.renewTime ?? '');
    if (!(Date.now() - renewedAt < FRESH_LEASE_MS)) return `holder ${pod} (token ${token}) does not renew`;
    const status = lockObjects.now.get(lock)?.status;
    const ready = (status?.queue ?? []).filter(({ reason }) => reason === 'Waiting').length;
    const all = podsOf(lock);
    const nodeName = all.find(({ metadata }) => metadata.uid === uid)?.spec.nodeName;
    if (nodeName === undefined) return `its holder ${pod} is gone`;
    if (all.length !== options.contenders) return `it has ${all.length} Pods`;
    if (status?.holder?.uid !== uid) return `its status names ${status?.holder?.name ?? 'nobody'}, its Lease ${pod}`;
    if (ready !== options.contenders - 1) return `its queue is ${JSON.stringify(status.queue ?? [])}`;
    const row = (await database.newest()).get(lock);
    if (row === undefined || String(row.token) !== token || row.at <= since) {
      return `holder ${pod} (token ${token}) has written nothing; the newest row is of token ${row?.token}`;
    }
    return { pod, uid, token: BigInt(token), node: cluster.node(nodeName) };
  };
  const all = stack.move();
  return {
    namespace,
    locks,
    dir,
    database,
    leases,
    pods,
    lockObjects,
    podsOf,
    async calm(lock, { from = 0, forMs = CALM_FOR_MS, seconds }) {
      const until = performance.now() + seconds * 1000;
      let calm: (Holder & { readonly since: number }) | undefined;
      for (;;) {
        const found = await look(lock, Math.max(from, Date.now() - FRESH_MS));
        if (typeof found === 'string') calm = undefined;
        else if (calm?.token !== found.token) calm = { ...found, since: Date.now() };
        else if (Date.now() - calm.since >= forMs) return calm;
        if (performance.now() > until)
          throw new Error(
            `Lock ${lock} is not calm after ${seconds} s: ${typeof found === 'string' ? found : 'not for long enough'}`,
          );
        await sleep(200);
      }
    },
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}

const repositoryRoot = join(import.meta.dirname, '../..');

/** One file that needs no `node_modules`; Pods read it from the folder that they share with this machine. */
async function bundleProgram(outfile: string): Promise<void> {
  await build({
    entryPoints: [join(import.meta.dirname, 'program.ts')],
    outfile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.19',
    alias: { 'kilit/guards/postgres': join(repositoryRoot, 'src/guards/postgres/index.ts') },
    external: ['pg-native'],
    banner: { js: "import { createRequire as cr } from 'node:module';\nconst require = cr(import.meta.url);" },
    logLevel: 'warning',
  });
}

interface Deployed {
  readonly dir: string;
  readonly replicas: number;
  readonly url: string;
  readonly guard: 'on' | 'off';
}

/** Contenders of one lock, on different nodes where that is possible. */
function deployment(lock: string, { dir, replicas, url, guard }: Deployed): object {
  const env = { LOCK: lock, GUARD: guard, DATABASE_URL: url };
  const { metadata, spec } = gatedPod({
    lock,
    name: lock,
    container: {
      image: TEST_IMAGE,
      command: ['node', `${HISTORY_DIR}/program.mjs`],
      env: Object.entries(env).map(([name, value]) => ({ name, value })),
      volumeMounts: [{ name: 'history', mountPath: HISTORY_DIR }],
    },
    spec: {
      terminationGracePeriodSeconds: GRACE_SECONDS,
      automountServiceAccountToken: false,
      volumes: [{ name: 'history', hostPath: { path: dir, type: 'Directory' } }],
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'kubernetes.io/hostname',
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: { app: lock } },
        },
      ],
    },
  });
  const labels = { ...metadata.labels, app: lock };
  return {
    metadata: { name: lock },
    spec: {
      replicas,
      strategy: { type: 'Recreate' },
      selector: { matchLabels: { app: lock } },
      template: { metadata: { labels }, spec },
    },
  };
}

async function endNamespace(kube: Kube, namespace: string): Promise<void> {
  await kube.ask('DELETE', `/apis/apps/v1/namespaces/${namespace}/deployments`);
  const path = `/api/v1/namespaces/${namespace}/pods`;
  await waitFor(
    `the end of all Pods of namespace ${namespace}`,
    async () => {
      await kube.ask('DELETE', `${path}?gracePeriodSeconds=1`);
      return ((await kube.must('GET', path)).items as unknown[]).length === 0;
    },
    { seconds: 120, everyMs: 2000 },
  );
  await kube.ask('DELETE', `/api/v1/namespaces/${namespace}`);
}
