/** Times of hand-overs that somebody asked for: a rolling update, a drain, an administrator. */
import { gatedPod } from '../../test/support/scene.ts';
import { waitFor } from '../../test/support/wait.ts';
import { type Bench, measuredPod, startOf } from './bench.ts';
import type { Figure } from './figures.ts';

const deploymentPath = ({ scene }: Bench, name = ''): string =>
  `/apis/apps/v1/namespaces/${scene.namespace}/deployments${name && `/${name}`}`;

/** Makes a gated Deployment with the default strategy, and waits until a program of it runs. */
async function deploy(bench: Bench, name: string, { replicas, spec = {} }: { replicas: number; spec?: object }) {
  await bench.scene.lock(name, {});
  const pod = gatedPod(measuredPod({ lock: name, name, spec: { terminationGracePeriodSeconds: 10, ...spec } }));
  const labels = { app: name };
  const metadata = { labels: { ...pod.metadata.labels, ...labels } };
  const template = { metadata, spec: pod.spec };
  await bench.scene.kube.must('POST', deploymentPath(bench), {
    body: { metadata: { name }, spec: { replicas, selector: { matchLabels: labels }, template } },
  });
  return holderOf(bench, name);
}

async function holderOf(bench: Bench, lock: string, former?: string) {
  const { pod } = await waitFor('the next holder', async () => {
    const holder = await bench.scene.holder(lock);
    return holder !== undefined && holder.pod !== former && holder;
  });
  return startOf(bench, lock, pod);
}

/** Waits until a Pod that is on another node than `node` could be granted the lock; any node will do without one. */
const spare = ({ scene }: Bench, lock: string, node?: string): Promise<string> =>
  waitFor('a waiter that can be granted the lock', async () => {
    for (const waiter of (await scene.readLock(lock)).status?.queue ?? []) {
      if (waiter.reason === 'Waiting' && (await scene.readPod(waiter.name)).spec.nodeName !== node) return waiter.name;
    }
    return undefined;
  });

export async function rollout(bench: Bench): Promise<readonly Figure[]> {
  const { scene, say, tries } = bench;
  const running: number[] = [];
  const complete: number[] = [];
  let holder = await deploy(bench, 'rollout', { replicas: 1 });
  for (let round = 1; round <= tries; round += 1) {
    const at = Date.now();
    const annotations = { round: String(round) };
    await scene.kube.must('PATCH', deploymentPath(bench, 'rollout'), {
      body: { spec: { template: { metadata: { annotations } } } },
    });
    holder = await holderOf(bench, 'rollout', holder.pod);
    running.push((holder.startedAt - at) / 1000);
    await waitFor('the end of the rollout', async () => {
      const { status, metadata } = await scene.kube.must('GET', deploymentPath(bench, 'rollout'));
      const { observedGeneration, replicas, availableReplicas } = status as Readonly<Record<string, number>>;
      return observedGeneration === metadata?.generation && replicas === 1 && availableReplicas === 1;
    });
    complete.push((Date.now() - at) / 1000);
    say(`rollout ${round}/${tries}: ${running.at(-1)?.toFixed(2)} s`);
  }
  await scene.kube.must('DELETE', deploymentPath(bench, 'rollout'));
  return [
    { name: 'rolling update, one gated replica → new version running', unit: 's', values: running },
    { name: 'the same → rollout complete', unit: 's', values: complete },
  ];
}

export async function drain(bench: Bench, tries: number): Promise<readonly Figure[]> {
  const { scene, cluster, say } = bench;
  const values: number[] = [];
  const spread = {
    maxSkew: 1,
    topologyKey: 'kubernetes.io/hostname',
    whenUnsatisfiable: 'ScheduleAnyway',
    labelSelector: { matchLabels: { app: 'drain' } },
  };
  let { pod } = await deploy(bench, 'drain', { replicas: 2, spec: { topologySpreadConstraints: [spread] } });
  await scene.kube.must('POST', `/apis/policy/v1/namespaces/${scene.namespace}/poddisruptionbudgets`, {
    body: { metadata: { name: 'drain' }, spec: { minAvailable: 1, selector: { matchLabels: { app: 'drain' } } } },
  });
  for (let round = 1; round <= tries; round += 1) {
    const node = (await scene.readPod(pod)).spec.nodeName ?? '';
    await spare(bench, 'drain', node);
    const at = Date.now();
    try {
      const options = ['--ignore-daemonsets', '--delete-emptydir-data', '--pod-selector=app=drain', '--timeout=120s'];
      await cluster.kubectl(['drain', node, ...options]);
      values.push((Date.now() - at) / 1000);
    } finally {
      await cluster.kubectl(['uncordon', node]);
    }
    say(`drain ${round}/${tries}: ${values.at(-1)?.toFixed(2)} s`);
    ({ pod } = await holderOf(bench, 'drain', pod));
    // The evicted one was made anew beside the holder; its successor finds the other node empty.
    await scene.deletePod(await spare(bench, 'drain'));
  }
  await scene.kube.must('DELETE', deploymentPath(bench, 'drain'));
  return [{ name: "`kubectl drain` of the holder's node, PodDisruptionBudget of 1", unit: 's', values }];
}

export async function handover(bench: Bench): Promise<readonly Figure[]> {
  const { scene, cluster, say, tries } = bench;
  const values: number[] = [];
  const whoami = JSON.parse(await cluster.kubectl(['auth', 'whoami', '-o', 'json']));
  const by: string = whoami.status.userInfo.username;
  let holder = await deploy(bench, 'handover', { replicas: 2 });
  for (let round = 1; round <= tries; round += 1) {
    await spare(bench, 'handover');
    const request = JSON.stringify({ token: holder.token, by, reason: 'measurement' });
    const at = Date.now();
    await scene.kube.must('PATCH', scene.lockPath('handover'), {
      body: { metadata: { annotations: { 'kilit.dev/handover': request } } },
    });
    holder = await holderOf(bench, 'handover', holder.pod);
    values.push((holder.startedAt - at) / 1000);
    say(`handover ${round}/${tries}: ${values.at(-1)?.toFixed(2)} s`);
  }
  await scene.kube.must('DELETE', deploymentPath(bench, 'handover'));
  return [{ name: 'hand-over asked (gate) → next program started', unit: 's', values }];
}
