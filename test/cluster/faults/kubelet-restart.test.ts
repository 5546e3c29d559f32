/**
 * The kubelet is restarted while a Pod waits for its lock.
 *
 * kubernetes/kubernetes#142305, kubernetes-facts.md: on 1.36.3 that opens the gate of the startup probe; `fileKeyRef`
 * keeps it shut.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../../support/cluster.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { FaultScene } from '../../support/fault-scene.ts';
import { type Life, violations } from '../../support/history.ts';
import type { Kube } from '../../support/kube.ts';
import { staysSo } from '../../support/wait.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;

describe.skipIf(cluster.provider !== 'native')('a restart of the kubelet', () => {
  let holder: Life;
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'kubelet');
    holder = await scene.holderAndWaiters('billing', ['held']);
    await scene.run({ lock: 'billing', name: 'waiting', migrates: true });
    await scene.waits('billing', ['waiting']);
  });
  afterEach(() => scene.calm());
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it('starts neither the program nor the init container of a Pod that waits', async () => {
    for (const restart of [1, 2]) {
      await scene.node.restartKubelet();
      await staysSo(`nothing of the waiting Pod runs after restart ${restart}`, 8, async () => {
        const started = await scene.lives('billing', 'waiting');
        return started.length === 0;
      });
    }
    expect(await scene.isAlive('waiting', 'kilit')).toBe(true);
    const { status } = await scene.readPod('waiting');
    for (const own of [status?.initContainerStatuses?.at(-1), status?.containerStatuses?.[0]]) {
      expect(own).toMatchObject({ restartCount: 0, state: { waiting: {} } });
    }
  });

  it('does not disturb the holder', async () => {
    expect(await scene.lives('billing', 'held')).toHaveLength(1);
    expect(await scene.isAlive('held', 'app')).toBe(true);
    expect(await scene.holds('billing', 'held')).toBe(holder.token.toString());
  });

  it('does not keep the waiting Pod from starting in its turn, its init container first', async () => {
    await scene.deletePod('held');
    const [migrated, started] = await scene
      .runs('billing', 'waiting', { times: 2 })
      .then(() => scene.lives('billing', 'waiting'));
    expect(migrated?.first).toBeLessThan(started?.first ?? 0);
    expect(started?.token).toBe(migrated?.token);
    expect(started?.token).toBeGreaterThan(holder.token);
    expect((await scene.history('billing')).filter(({ pod }) => pod === 'waiting').map(({ did }) => did)).toContain(
      'migrated',
    );
    expect(violations(await scene.history('billing'), { sameGrant: 'waiting' })).toEqual([]);
  });
});
