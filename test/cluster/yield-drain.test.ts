/**
 * `kubectl drain` of the holder's node, with a PodDisruptionBudget that wants one Pod to be Ready: without a yield the
 * holder may not be evicted, since it is the only one that is Ready, and the waiter gets Ready only when the holder ends.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestCluster } from '../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../support/fault-scene.ts';
import { violations } from '../support/history.ts';
import { type Kube, openKube } from '../support/kube.ts';
import { openTwoNodes, type TwoNodes } from '../support/two-nodes.ts';
import { waitFor } from '../support/wait.ts';

const cluster = await openTestCluster();
let two: TwoNodes;
let kube: Kube;
let scene: FaultScene;

describe.skipIf(cluster.provider !== 'native')('a drain of the node of a gated holder', () => {
  beforeAll(async () => {
    two = await openTwoNodes(cluster);
    kube = openKube(two.cluster.kubeconfigPath, two.cluster.kubectlPath);
    scene = await FaultScene.openFaults(kube, two.cluster, 'drain');
  }, 600_000);
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
    await two?.[Symbol.asyncDispose]();
  });

  it('completes, although the PodDisruptionBudget wants one Pod to be available', async () => {
    await scene.lock('drain', { leaseDurationSeconds: 15, takeoverDelaySeconds: 0 });
    const spread = {
      maxSkew: 1,
      topologyKey: 'kubernetes.io/hostname',
      whenUnsatisfiable: 'ScheduleAnyway',
      labelSelector: { matchLabels: { app: 'drain' } },
    };
    await scene.deploy({ lock: 'drain', name: 'drain', replicas: 2, spec: { topologySpreadConstraints: [spread] } });
    await kube.must('POST', `/apis/policy/v1/namespaces/${scene.namespace}/poddisruptionbudgets`, {
      body: { metadata: { name: 'drain' }, spec: { minAvailable: 1, selector: { matchLabels: { app: 'drain' } } } },
    });
    const first = await scene.nextLife('drain', []);
    const node = (await scene.readPod(first.pod)).spec.nodeName ?? '';
    await waitFor('a waiter that can be granted the lock', async () => {
      const [waiter] = (await scene.readLock('drain')).status?.queue ?? [];
      return waiter?.reason === 'Waiting' && (await scene.readPod(waiter.name)).spec.nodeName !== node;
    });
    await waitFor('the budget to count the holder', async () => {
      const { status } = await kube.must(
        'GET',
        `/apis/policy/v1/namespaces/${scene.namespace}/poddisruptionbudgets/drain`,
      );
      return (status as { currentHealthy: number }).currentHealthy === 1;
    });

    const drainedAt = Date.now();
    try {
      // Only these Pods: the node's other ones are none of this test's.
      const options = ['--ignore-daemonsets', '--delete-emptydir-data', '--timeout=120s', '--pod-selector=app=drain'];
      await scene.kubectl('drain', node, ...options);
      figure('kubectl drain of the holder’s node', Date.now() - drainedAt);
    } finally {
      await scene.kubectl('uncordon', node);
    }
    const next = await scene.nextLife('drain', [first]);
    figure('kubectl drain → next program running', next.from - drainedAt);
    figure('no program ran', next.from - first.to);
    expect(next.pod).not.toBe(first.pod);
    expect(violations(await scene.history('drain'))).toEqual([]);
    expect((await kube.ask('GET', scene.podPath(first.pod))).status).toBe(404);
  });
});
