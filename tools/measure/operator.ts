/** The operator's own figures: take-over after its leader was killed, API writes, memory. */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { OPERATOR_LEASE } from '../../src/api/names.ts';
import { OPERATOR_NAMESPACE } from '../../test/support/install.ts';
import { waitFor } from '../../test/support/wait.ts';
import { type Bench, measuredPod, startOf, uidOf, waits } from './bench.ts';
import type { Figure } from './figures.ts';

const LEADER_LEASE = `/apis/coordination.k8s.io/v1/namespaces/${OPERATOR_NAMESPACE}/leases/${OPERATOR_LEASE}`;

async function leaderPod({ scene }: Bench): Promise<{ readonly uid: string; readonly node: string }> {
  const lease = await scene.kube.must('GET', LEADER_LEASE);
  const name = (lease.spec as { holderIdentity: string }).holderIdentity.split('_')[0] ?? '';
  const pod = await scene.kube.must('GET', `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods/${name}`);
  return { uid: uidOf(pod), node: (pod.spec as { nodeName: string }).nodeName };
}

/** A waiter waits for a lock that appears in the moment in which the leader is killed. */
export async function leaderKilled(bench: Bench, tries: number): Promise<readonly Figure[]> {
  const { scene, cluster, say } = bench;
  const values: number[] = [];
  for (let round = 1; round <= tries; round += 1) {
    const lock = `leader-${round}`;
    await scene.lock(lock, {});
    await scene.pod(measuredPod({ lock, name: `${lock}-a`, spec: { restartPolicy: 'Never' } }));
    await startOf(bench, lock, `${lock}-a`);
    await scene.pod(measuredPod({ lock, name: `${lock}-b`, spec: { restartPolicy: 'Never' } }));
    await waits(bench, lock, `${lock}-b`);
    const leader = await leaderPod(bench);
    const at = Date.now();
    await cluster.node(leader.node).killContainer(leader.uid, 'operator');
    await scene.deletePod(`${lock}-a`);
    const start = await startOf(bench, lock, `${lock}-b`);
    values.push((start.grantedAt - at) / 1000);
    say(`${lock}/${tries}: ${values.at(-1)?.toFixed(2)} s`);
    await scene.deletePod(`${lock}-b`);
    await waitFor(
      'both operators to be ready',
      async () => {
        const list = await scene.kube.must('GET', `/apis/apps/v1/namespaces/${OPERATOR_NAMESPACE}/deployments/kilit`);
        return (list.status as { readyReplicas?: number }).readyReplicas === 2;
      },
      { seconds: 300, everyMs: 1000 },
    );
  }
  return [
    {
      name: 'operator leader SIGKILLed while a lock becomes free and has a waiter → granted',
      unit: 's',
      values,
      aim: 20,
    },
  ];
}

/** Changes of the Leases, locks and Pods of the namespace within a minute in which nothing happens. */
export async function writes(bench: Bench): Promise<readonly Figure[]> {
  const { scene, say } = bench;
  const waitersCount = 10;
  await scene.lock('steady', {});
  await scene.pod(measuredPod({ lock: 'steady', name: 'steady-holder' }));
  await startOf(bench, 'steady', 'steady-holder');
  for (let i = 0; i < waitersCount; i += 1) await scene.pod(measuredPod({ lock: 'steady', name: `steady-${i}` }));
  for (let i = 0; i < waitersCount; i += 1) await waits(bench, 'steady', `steady-${i}`);
  await sleep(15_000);
  const seconds = 120;
  const before = await revisions(bench);
  say(`counting writes for ${seconds} s`);
  let leaseWrites = 0;
  let last = before.lease;
  const until = Date.now() + seconds * 1000;
  while (Date.now() < until) {
    await sleep(250);
    const { resourceVersion } = (await scene.readLease('steady')).metadata;
    if (resourceVersion !== last) leaseWrites += 1;
    last = resourceVersion;
  }
  const after = await revisions(bench);
  const changed = [...after.rest]
    .filter(([name, revision]) => before.rest.get(name) !== revision)
    .map(([name]) => name);
  say(`written besides the Lease: ${changed.join(', ') || 'nothing'}`);
  const others = changed.filter((name) => name !== 'lock' && name !== 'steady-holder').length;
  for (const name of ['steady-holder', ...Array.from({ length: waitersCount }, (_, i) => `steady-${i}`)]) {
    await scene.deletePod(name, 0);
  }
  return [
    {
      name: 'API writes per held lock (lease 15 s)',
      unit: 'per minute',
      values: [(leaseWrites * 60) / seconds],
      aim: 12,
    },
    {
      name: `API writes per waiter (${waitersCount} waiters)`,
      unit: 'per minute',
      values: [(others * 60) / seconds / waitersCount],
      aim: 0,
    },
  ];
}

/** Revision of the Lease, and of the lock and of each Pod of the namespace: a changed one was written. */
async function revisions({
  scene,
}: Bench): Promise<{ readonly lease: string; readonly rest: ReadonlyMap<string, string> }> {
  const lease = await scene.readLease('steady');
  const lock = await scene.readLock('steady');
  const pods = (await scene.kube.must('GET', scene.podPath())).items as {
    metadata: { name: string; resourceVersion: string };
  }[];
  const rest = new Map(pods.map(({ metadata }) => [metadata.name, metadata.resourceVersion]));
  rest.set('lock', lock.metadata.resourceVersion);
  return { lease: lease.metadata.resourceVersion, rest };
}

export async function memory(bench: Bench, locks: number): Promise<readonly Figure[]> {
  const { scene, cluster, say } = bench;
  await scene.lock('memory', {});
  const pod = await scene.pod(measuredPod({ lock: 'memory', name: 'memory' }));
  await startOf(bench, 'memory', 'memory');
  await sleep(20_000);
  const node = cluster.node((await scene.readPod('memory')).spec.nodeName ?? '');
  const sidecar = (await node.pidsOfPod(uidOf(pod))).get('kilit')?.[0] ?? 0;
  const privateMb = (await smaps(sidecar, 'Private_Clean')) + (await smaps(sidecar, 'Private_Dirty'));

  say(`making ${locks} locks`);
  for (let i = 0; i < locks; i += 1) {
    await scene.kube.must('POST', scene.lockPath(), {
      body: { apiVersion: 'kilit.dev/v1alpha1', kind: 'DistributedLock', metadata: { name: `idle-${i}` } },
    });
  }
  await waitFor(
    'all locks to be Ready',
    async () => {
      const { status } = await scene.readLock(`idle-${locks - 1}`);
      return status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True');
    },
    { seconds: 600, everyMs: 1000 },
  );
  await sleep(60_000);
  const residentMb = await operatorMemoryMb(bench);
  await scene.deletePod('memory');
  return [
    { name: 'sidecar, private memory', unit: 'MB', values: [privateMb], aim: 20 },
    { name: `operator with ${locks} idle locks, resident memory`, unit: 'MB', values: [residentMb], aim: 200 },
  ];
}

/** Resident memory of the leading operator. */
export async function operatorMemoryMb(bench: Bench): Promise<number> {
  const leader = await leaderPod(bench);
  const operator = (await bench.cluster.node(leader.node).pidsOfPod(leader.uid)).get('operator')?.[0] ?? 0;
  return smaps(operator, 'Rss');
}

async function smaps(pid: number, field: string): Promise<number> {
  const text = await readFile(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(new RegExp(`^${field}: +(\\d+) kB`, 'm').exec(text)?.[1] ?? Number.NaN) / 1024;
}
