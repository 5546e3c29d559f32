/**
 * No operator runs: held locks stay held, Pods are still gated, and nothing is granted until it is back.
 *
 * open-policy-agent/gatekeeper#3829, istio/istio#5947: there is no webhook that could be away.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../../support/cluster.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../../support/fault-scene.ts';
import { violations } from '../../support/history.ts';
import { OPERATOR_NAMESPACE, RELEASE } from '../../support/install.ts';
import type { Kube, KubeObject } from '../../support/kube.ts';
import { staysSo, waitFor } from '../../support/wait.ts';

const cluster = await openTestCluster();
const DEPLOYMENT = `/apis/apps/v1/namespaces/${OPERATOR_NAMESPACE}/deployments/${RELEASE}`;

let kube: Kube;
let scene: FaultScene;
let replicas: unknown;

async function scale(to: unknown): Promise<void> {
  await kube.must('PATCH', DEPLOYMENT, { body: { spec: { replicas: to } } });
  await waitFor(`${String(to)} operators`, async () => {
    const pods = await kube.must(
      'GET',
      `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods?labelSelector=app.kubernetes.io%2Fcomponent%3Doperator`,
    );
    const { status } = await kube.must('GET', DEPLOYMENT);
    const { readyReplicas = 0 } = status as { readyReplicas?: number };
    return readyReplicas === to && (pods.items as KubeObject[]).length === to;
  });
}

describe.skipIf(cluster.provider !== 'native')('with the operator scaled to zero', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'away');
    await scene.holderAndWaiters('billing', ['held']);
    replicas = (await kube.must('GET', DEPLOYMENT)).spec?.replicas;
    await scale(0);
  });
  afterAll(async () => {
    if (replicas !== undefined) await scale(replicas);
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it('the holder keeps renewing, and its program runs on', async () => {
    const renewals = new Set<string>();
    await waitFor('renewals over more than a lease', async () => {
      renewals.add((await scene.readLease('billing')).spec?.renewTime ?? '');
      return renewals.size > 4;
    });
    expect(await scene.lives('billing')).toHaveLength(1);
    expect(await scene.isAlive('held', 'app')).toBe(true);
  });

  it('a new Pod is injected and stays behind the gate, also when the holder has ended', async () => {
    await scene.run({ lock: 'billing', name: 'late' });
    await waitFor('the sidecar of the new Pod', () => scene.isAlive('late', 'kilit'));
    await scene.deletePod('held');
    await waitFor('the end of the holder', async () => (await kube.ask('GET', scene.podPath('held'))).status === 404);
    await staysSo('the new Pod waits', 6, async () => (await scene.lives('billing', 'late')).length === 0);
    expect((await scene.readPod('late')).status?.phase).toBe('Pending');
  });

  it('and back again, the new Pod starts', async () => {
    const backAt = Date.now();
    await scale(replicas);
    const started = await scene.runs('billing', 'late');
    figure('program started after the operator was scaled up again', started.from - backAt);
    expect(violations(await scene.history('billing'))).toEqual([]);
  });
});
