/**
 * etcd is restored, and locks are moved to another cluster: on the real etcd and API server.
 *
 * The oracle is the guard in PostgreSQL, which saw every token, and the tokens that were issued.
 *
 * In a cluster of its own, since nobody can undo a restore or a raised base: it comes up here and is taken down, which is
 * about one of the five minutes that this takes on two cores.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DistributedLock } from '../../../src/api/generated/distributedlock.ts';
import { type Cluster, KILIT_IMAGE, openCluster } from '../../../tools/cluster/index.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { Etcd } from '../../support/etcd.ts';
import { figure } from '../../support/fault-scene.ts';
import { installArgs, OPERATOR_NAMESPACE, RELEASE } from '../../support/install.ts';
import { type Kube, openKube } from '../../support/kube.ts';
import { type Database, openServer, type Server } from '../../support/postgres/index.ts';
import { condition, Scene } from '../../support/scene.ts';
import { staysSo, waitFor } from '../../support/wait.ts';

const { provider, name: shared } = await openTestCluster();
const NAME = `${shared.slice(0, 14)}-moves`;
const LOCK = 'ledger';
/** A lock that is free when etcd is saved: nothing writes its Lease after the restore but the operator. */
const IDLE = 'idle';
/** A lock whose holder and waiter live through the restore. */
const CALM = 'calm';
const RESOURCE = 'moves/ledger';
const LONG = { seconds: 180 } as const;

let cluster: Cluster;
let kube: Kube;
let etcd: Etcd;
let scene: Scene;
let server: Server;
let guard: Database;
/** Every token that a program has had, in the order in which they were issued. */
const tokens: bigint[] = [];
/** The same, as a Lease has them that is restored. */
const restored = new Set<string>();

const lastToken = (): bigint => tokens.at(-1) ?? 0n;
const ready = (lock: DistributedLock) => condition(lock, 'Ready');
const enter = (token: bigint) =>
  guard.query('select kilit.enter($1::text, $2::text)', [RESOURCE, token.toString()], 'app');

/** Waits until a Pod holds the lock, which is the only one, and lets its guarded program write. */
async function granted(pod: string): Promise<bigint> {
  const token = await waitFor(
    `Pod ${pod} to be granted the lock anew`,
    async () => {
      const holder = await scene.holder(LOCK);
      // A restored Lease names its holder of then, until that gives back what it has lost.
      return holder?.pod === pod && !restored.has(holder.token) && BigInt(holder.token);
    },
    LONG,
  );
  restored.add(token.toString());
  expect(token).toBeGreaterThan(lastToken());
  await waitFor(
    `the program of Pod ${pod} to start with its token`,
    async () => (await scene.starts(pod)).at(-1)?.env === token.toString(),
    LONG,
  );
  await enter(token);
  tokens.push(token);
  return token;
}

/** One Pod after the other holds the lock. */
async function handOver(from: string | undefined, to: string): Promise<bigint> {
  await scene.pod({ lock: LOCK, name: to });
  if (from !== undefined) await scene.deletePod(from);
  return granted(to);
}

/** Waits until the lock says that it fell behind; returns the token base that it asks for. */
async function behind(): Promise<string> {
  const message = await waitFor(
    'the lock to say that the revision fell behind',
    async () => {
      const shown = ready(await scene.readLock(LOCK));
      return shown?.reason === 'RevisionFellBehind' && shown.status === 'False' && shown.message;
    },
    LONG,
  );
  const [, base] = /Raise the token base from \d+ to (\d+) /.exec(message) ?? [];
  if (base === undefined) throw new Error(`No base in: ${message}`);
  expect(message).toMatch(/A token could come again that was issued before/);
  console.log(message);
  return base;
}

/** As the guide says it. */
function raiseBase(base: string): void {
  kube.kubectl(['annotate', '--overwrite', 'namespace', OPERATOR_NAMESPACE, `kilit.dev/token-base=${base}`]);
}

async function tokenBase(): Promise<string> {
  const { metadata } = await kube.must('GET', `/api/v1/namespaces/${OPERATOR_NAMESPACE}`);
  return metadata?.annotations?.['kilit.dev/token-base'] ?? '0';
}

const LEASES = '/apis/coordination.k8s.io/v1/leases';

async function revision(): Promise<bigint> {
  const { metadata } = await kube.must('GET', `${LEASES}?limit=1`);
  return BigInt(metadata?.resourceVersion ?? '0');
}

/** What a watch of all Leases brings within 5 s: the operators write one at least every two. `message` `''` is nothing. */
async function watchedFrom(from: bigint): Promise<{ readonly message?: string; readonly object?: unknown }> {
  const { status, body } = await kube.ask('GET', `${LEASES}?watch=1&timeoutSeconds=5&resourceVersion=${from}`);
  expect(status).toBe(200);
  return body;
}

async function stale(token: bigint): Promise<string | undefined> {
  try {
    await enter(token);
    return undefined;
  } catch (error) {
    return (error as { readonly code?: string }).code;
  }
}

const operators = async () => {
  const path = `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods?labelSelector=app.kubernetes.io%2Fcomponent%3Doperator`;
  const { items } = await kube.must('GET', path);
  return items as { readonly metadata: { readonly name: string; readonly uid: string } }[];
};

async function behindMetric(pod: string): Promise<string | undefined> {
  const path = `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods/${pod}:8080/proxy/metrics`;
  const { body } = await kube.ask('GET', path);
  return /^kilit_locks_behind (\d+)$/m.exec(body.message ?? '')?.[1];
}

describe.skipIf(provider !== 'native')('the revisions of the cluster', () => {
  beforeAll(async () => {
    const startedAt = Date.now();
    cluster = await openCluster({ name: NAME, provider: 'native', onProgress: console.error });
    await cluster.loadImage(KILIT_IMAGE);
    await cluster.helm(installArgs({ replicas: 2 }));
    kube = openKube(cluster.kubeconfigPath, cluster.kubectlPath);
    etcd = await Etcd.open(cluster);
    server = await openServer();
    guard = await server.createDatabase();
    await guard.query('grant kilit_writer to app');
    scene = await Scene.open(kube, 'moves');
    await scene.lock(LOCK);
    figure('cluster, operator and database for the moves', Date.now() - startedAt);
  }, 600_000);
  afterAll(async () => {
    await guard?.[Symbol.asyncDispose]();
    await server?.[Symbol.asyncDispose]();
    await etcd?.[Symbol.asyncDispose]();
    kube?.close();
    await cluster?.down();
  }, 120_000);

  it('go back by a restore without --bump-revision: nothing is granted until the base is raised, then greater tokens', async () => {
    await handOver(undefined, 'a');
    // Long enough that its holder does not stop while there is no API server.
    await scene.lock(CALM, { leaseDurationSeconds: 120, takeoverDelaySeconds: 0 });
    await scene.pod({ lock: CALM, name: 'holder' });
    const held = await scene.holds(CALM, 'holder', LONG.seconds);
    await scene.started('holder', LONG.seconds);
    await scene.pod({ lock: CALM, name: 'waiter' });
    await waitFor(
      'the waiter to be ready',
      async () => (await scene.readLock(CALM)).status?.queue?.[0]?.reason === 'Waiting',
      LONG,
    );
    const snapshot = await etcd.snapshot('before');
    await handOver('a', 'b');
    await handOver('b', 'c');
    // What a client hears that goes on from a revision that the API server has not reached.
    expect((await watchedFrom(await revision())).message).not.toBe('');
    expect(await watchedFrom((await revision()) + 100_000n)).toEqual({ message: '' });
    const running = (await operators()).map(({ metadata }) => metadata.uid);

    await etcd.restore(snapshot);
    const restoredAt = Date.now();
    // The restored Lease names Pod a, with the token that c has outdone; c is not there any more.
    const base = await behind();
    figure('restore of etcd → the lock says that the revision fell behind', Date.now() - restoredAt);
    expect((await operators()).map(({ metadata }) => metadata.uid)).toEqual(running);
    await waitFor(
      'Pod a to have given back what it had lost',
      async () => (await scene.holder(LOCK)) === undefined,
      LONG,
    );
    await staysSo('nobody is granted the lock', 15, async () => (await scene.holder(LOCK)) === undefined);
    const metrics = await Promise.all((await operators()).map(({ metadata }) => behindMetric(metadata.name)));
    expect(metrics).toEqual(['2', '2']);
    expect((await scene.readLock(LOCK)).status?.queue?.[0]).toMatchObject({ name: 'a', reason: 'GrantsPaused' });

    // The same grant, at a lower revision: its holder goes on renewing it.
    const { renewTime } = (await scene.readLease(CALM)).spec ?? {};
    await waitFor('a renewal', async () => (await scene.readLease(CALM)).spec?.renewTime !== renewTime, LONG);
    expect(await scene.holder(CALM)).toEqual({ pod: 'holder', token: held });
    expect(await scene.starts('holder')).toHaveLength(1);

    const raisedAt = Date.now();
    raiseBase(base);
    const former = lastToken();
    const token = await granted('a');
    figure('base raised → granted and its program started', Date.now() - raisedAt);
    expect(token).toBeGreaterThan(BigInt(base));
    expect(await stale(former)).toBe('KL001');
    await waitFor('the lock to be Ready', async () => ready(await scene.readLock(LOCK))?.status === 'True');
    await scene.deletePod('holder');
    expect(BigInt(await scene.holds(CALM, 'waiter', LONG.seconds))).toBeGreaterThan(BigInt(base));
    await scene.started('waiter', LONG.seconds);
    await waitFor(
      'no lock behind',
      async () => (await behindMetric((await operators())[0]?.metadata.name ?? '')) === '0',
    );
  }, 600_000);

  it('grow by a restore with --bump-revision and --mark-compacted: tokens grow, and nothing is said', async () => {
    await scene.lock(IDLE);
    const saved = await scene.readLease(IDLE);
    const snapshot = await etcd.snapshot('bumped');
    await scene.pod({ lock: IDLE, name: 'x' });
    const idle = BigInt(await scene.holds(IDLE, 'x', LONG.seconds));
    await handOver('a', 'd');
    await handOver('d', 'e');
    const former = lastToken();
    const reached = await revision();

    await etcd.restore(snapshot, ['--bump-revision=1000000000', '--mark-compacted']);
    const restoredAt = Date.now();
    const token = await granted('a');
    figure('restore of etcd with a bump → granted and its program started', Date.now() - restoredAt);
    expect(token).toBeGreaterThan(1_000_000_000n);
    expect(await stale(former)).toBe('KL001');
    expect(await watchedFrom(reached)).toMatchObject({ object: { code: 410 } });

    // The jump is the cluster's alone: a Lease keeps its revision of then, from which its next token would be x's again.
    expect(idle).toBe(BigInt(saved.metadata.resourceVersion) + BigInt(await tokenBase()));
    await scene.pod({ lock: IDLE, name: 'y' });
    expect(BigInt(await scene.holds(IDLE, 'y', LONG.seconds))).toBeGreaterThan(1_000_000_000n);
    await staysSo('the lock is Ready', 10, async () => ready(await scene.readLock(LOCK))?.status === 'True');
  }, 600_000);

  it('are smaller in another cluster: a lock that was moved with its status is not granted until the base is raised', async () => {
    const former = lastToken();
    await waitFor('the status to tell the last token', async () => {
      return (await scene.readLock(LOCK)).status?.fencingToken === former.toString();
    });
    const dump = kube.kubectl(['get', 'distributedlock', LOCK, '-n', scene.namespace, '-o', 'json']);

    await etcd.renew();
    await waitFor('the new cluster', async () => (await kube.ask('GET', '/api/v1/nodes/node1')).status === 200, LONG);
    kube.kubectl(['apply', '--server-side', '-f', 'charts/kilit/files/crd.yaml']);
    await waitFor('the CRD', async () => (await kube.ask('GET', scene.lockPath())).status === 200);
    kube.kubectl(['create', 'namespace', scene.namespace]);
    restoreLock(dump);
    await cluster.helm([...installArgs({ replicas: 2 }), '--take-ownership']);
    await scene.pod({ lock: LOCK, name: 'f' });

    const base = await behind();
    expect(BigInt(base)).toBeGreaterThan(former);
    await staysSo('nobody is granted the lock', 15, async () => (await scene.holder(LOCK)) === undefined);
    // Another lock, which came without a status, is not kept back.
    await scene.lock('fresh');

    // The operator that saw it ends; what it knows is in the status.
    kube.kubectl(['rollout', 'restart', `deployment/${RELEASE}`, '-n', OPERATOR_NAMESPACE]);
    kube.kubectl(['rollout', 'status', `deployment/${RELEASE}`, '-n', OPERATOR_NAMESPACE, '--timeout=120s']);
    await staysSo('nobody is granted the lock', 15, async () => (await scene.holder(LOCK)) === undefined);
    raiseBase(base);
    await granted('f');
    expect(await stale(former)).toBe('KL001');
    await waitFor('the lock to be Ready', async () => ready(await scene.readLock(LOCK))?.status === 'True');
  }, 600_000);
});

/** With its status, as a tool for backups restores it; before kilit is installed, for then only its operator may. */
function restoreLock(dump: string): void {
  const lock = JSON.parse(dump) as DistributedLock;
  const {
    name,
    namespace,
    annotations = {},
  } = lock.metadata as { name: string; namespace: string; annotations?: object };
  const restored = JSON.stringify({ ...lock, metadata: { name, namespace, annotations } });
  kube.kubectl(['create', '-f', '-'], restored);
  kube.kubectl(['replace', '--subresource=status', '-f', '-'], restored);
}
