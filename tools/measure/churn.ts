/** Locks that are made, used once and deleted, by the thousand: nothing of them is left behind. */
import { setTimeout as sleep } from 'node:timers/promises';
import { OPERATOR_NAMESPACE } from '../../test/support/install.ts';
import type { Identity } from '../../test/support/kube.ts';
import { gatedPod } from '../../test/support/scene.ts';
import { waitFor } from '../../test/support/wait.ts';
import type { Bench } from './bench.ts';
import type { Figure } from './figures.ts';
import { endedStatus, ghostNode, waitingStatus } from './ghost.ts';
import { operatorMemoryMb } from './operator.ts';

const SHORT = { leaseDurationSeconds: 15, takeoverDelaySeconds: 0 };
const SETTLE_MS = 60_000;

/** Pods that no kubelet runs: what a kubelet and a sidecar would write is written here. The grants are the operator's own. */
export async function churn(bench: Bench, count: number): Promise<readonly Figure[]> {
  await using node = await ghostNode(bench.scene.kube, `ghost-${bench.scene.namespace}`);
  return await used(bench, {
    what: 'locks without real Pods',
    count,
    workers: 40,
    use: (lock) => useGhost(bench, node.name, lock),
  });
}

/** The same with Pods whose program ends at once. */
export const churnReal = (bench: Bench, count: number): Promise<readonly Figure[]> =>
  used(bench, { what: 'locks with real Pods', count, workers: 12, use: (lock) => useReal(bench, lock) });

interface Use {
  readonly what: string;
  readonly count: number;
  readonly workers: number;
  /** Holds the lock once. Returns the token. */
  readonly use: (lock: string) => Promise<bigint>;
}

async function used(bench: Bench, { what, count, workers, use }: Use): Promise<readonly Figure[]> {
  const { scene, say } = bench;
  const { kube } = scene;
  const seriesBefore = await series(bench);
  const memoryBefore = await operatorMemoryMb(bench);
  const tokens = new Set<bigint>();
  const startedAt = performance.now();
  let next = 0;
  let done = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const lock = `churn-${next}`;
      next += 1;
      await kube.must('POST', scene.lockPath(), {
        body: { apiVersion: 'kilit.dev/v1alpha1', kind: 'DistributedLock', metadata: { name: lock }, spec: SHORT },
      });
      tokens.add(await use(lock));
      await kube.must('DELETE', `${scene.podPath(lock)}?gracePeriodSeconds=0`);
      // A lock whose status names a holder is not deleted.
      await waitFor(`lock ${lock} to be free`, async () => (await scene.readLock(lock)).status?.holder === undefined, {
        seconds: 120,
        everyMs: 200,
      });
      await kube.must('DELETE', scene.lockPath(lock));
      await waitFor(
        `the end of lock ${lock}`,
        async () => (await kube.ask('GET', scene.lockPath(lock))).status === 404,
        {
          seconds: 120,
          everyMs: 200,
        },
      );
      done += 1;
      if (done % Math.ceil(count / 20) === 0) say(`${done} of ${count} ${what}`);
    }
  };
  await Promise.all(Array.from({ length: workers }, worker));
  const minutes = (performance.now() - startedAt) / 60_000;
  if (tokens.size !== count) throw new Error(`${count} grants had ${tokens.size} tokens`);
  const left = await leftBehind(bench);
  if (left.length > 0) throw new Error(`${left.length} objects are left: ${left.slice(0, 10).join(', ')}`);
  await sleep(SETTLE_MS);
  const seriesAfter = await series(bench);
  const memoryAfter = await operatorMemoryMb(bench);
  const unnamed = seriesAfter.filter((line) => line.includes('churn-'));
  if (unnamed.length > 0) throw new Error(`The operator's metrics name locks: ${unnamed[0]}`);
  say(`series of the operator: ${seriesBefore.length} before, ${seriesAfter.length} after`);
  return [
    {
      name: `${count} ${what}, made, used once and deleted: nothing left`,
      unit: 'per minute',
      values: [count / minutes],
    },
    { name: `operator before ${count} ${what}, resident memory`, unit: 'MB', values: [memoryBefore] },
    { name: 'the same one minute after them', unit: 'MB', values: [memoryAfter] },
  ];
}

async function useGhost({ scene }: Bench, node: string, lock: string): Promise<bigint> {
  const { kube, namespace } = scene;
  const body = gatedPod({
    lock,
    name: lock,
    spec: { nodeName: node, restartPolicy: 'Never', tolerations: [{ operator: 'Exists' }] },
  });
  const { metadata } = await kube.must('POST', scene.podPath(), { body });
  const uid = metadata?.uid ?? '';
  const status = (of: object) => kube.must('PATCH', `${scene.podPath(lock)}/status`, { body: { status: of } });
  await status(waitingStatus());
  const granted = await waitFor(
    `the grant of ${lock}`,
    async () => {
      const { status: code, body: lease } = await kube.ask('GET', scene.leasePath(lock));
      return code === 200 && lease.spec?.holderIdentity === `${lock}_${uid}` ? lease : undefined;
    },
    { seconds: 120, everyMs: 200 },
  );
  const renewTime = new Date().toISOString().replace('Z', '001Z');
  // Sidecars may update their Lease, not patch it.
  await kube.must('PUT', scene.leasePath(lock), {
    as: podIdentity(namespace, lock, uid),
    body: { ...granted, spec: { ...granted.spec, renewTime } },
  });
  await status(endedStatus());
  await waitFor(
    `the end of the grant of ${lock}`,
    async () => (await scene.readLease(lock)).spec?.holderIdentity === '' || undefined,
    { seconds: 120, everyMs: 200 },
  );
  return BigInt(granted.metadata?.annotations?.['kilit.dev/fencing-token'] ?? '');
}

/** The sidecar of this Pod, as the API server knows it by its bound token. */
const podIdentity = (namespace: string, name: string, uid: string): Identity => ({
  kind: 'user',
  name: `system:serviceaccount:${namespace}:default`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
  extra: { 'authentication.kubernetes.io/pod-name': name, 'authentication.kubernetes.io/pod-uid': uid },
});

async function useReal({ scene }: Bench, lock: string): Promise<bigint> {
  await scene.pod({
    lock,
    name: lock,
    spec: { restartPolicy: 'Never' },
    container: { command: ['sh', '-c', 'echo "{\\"token\\": \\"$FENCING_TOKEN\\"}"'] },
  });
  await waitFor(`Pod ${lock} to complete`, async () => (await scene.readPod(lock)).status?.phase === 'Succeeded', {
    seconds: 180,
    everyMs: 500,
  });
  const [line] = await scene.logs(lock);
  return BigInt(String(line?.token));
}

async function leftBehind({ scene }: Bench): Promise<readonly string[]> {
  const { kube, namespace } = scene;
  const paths = [
    scene.lockPath(),
    `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
    `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/roles`,
    `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`,
    scene.podPath(),
  ];
  const list = async (path: string) =>
    ((await kube.must('GET', path)).items as { metadata: { name: string } }[]).map(
      ({ metadata }) => `${path.split('/').at(-1)}/${metadata.name}`,
    );
  // The garbage collector is not asked to be quick.
  return waitFor(
    'nothing to be left',
    async () => {
      const left = (await Promise.all(paths.map(list))).flat();
      return left.length === 0 ? left : undefined;
    },
    { seconds: 60, everyMs: 1000 },
  ).catch(async () => (await Promise.all(paths.map(list))).flat());
}

/** The lines of the operators' metrics, without comments. */
async function series({ scene }: Bench): Promise<readonly string[]> {
  const pods = `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods`;
  const { items } = await scene.kube.must('GET', `${pods}?labelSelector=app.kubernetes.io%2Fname%3Dkilit`);
  const texts = await Promise.all(
    (items as { metadata: { name: string } }[]).map(({ metadata }) =>
      scene.kube.must('GET', `${pods}/${metadata.name}:8080/proxy/metrics`),
    ),
  );
  return texts.flatMap(({ message = '' }) =>
    message.split('\n').filter((line) => line !== '' && !line.startsWith('#')),
  );
}
