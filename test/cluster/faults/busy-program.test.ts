/**
 * A program that blocks its event loop for longer than its lease.
 *
 * OptimalBits/bull#308, taskforcesh/bullmq#3183: where the program itself renews, it loses the lock by that, and both run.
 * Here the sidecar renews, in a process of its own.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../../support/cluster.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { FaultScene } from '../../support/fault-scene.ts';
import type { Kube } from '../../support/kube.ts';
import { waitFor } from '../../support/wait.ts';

const LEASE_SECONDS = 5;
const SPIN_SECONDS = 15;

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;

describe.skipIf(cluster.provider !== 'native')('a program that spins for three leases', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'busy');
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it('keeps its lock and its token, and goes on when it is done', async () => {
    const spinning = {
      lockSpec: { leaseDurationSeconds: LEASE_SECONDS, takeoverDelaySeconds: 0 },
      spinMs: SPIN_SECONDS * 1000,
    };
    await scene.holderAndWaiters('spin', ['spin-a', 'spin-b'], spinning);
    const ran = await waitFor('a line after the spinning', async () =>
      (await scene.history('spin')).find(({ did }) => did === 'ran'),
    );
    const [started] = await scene.history('spin');
    expect(ran.at - (started?.at ?? Number.NaN)).toBeGreaterThanOrEqual(SPIN_SECONDS * 1000);
    expect(ran).toMatchObject({ pod: 'spin-a', life: started?.life, token: started?.token, file: started?.token });
    expect(await scene.lives('spin', 'spin-b')).toEqual([]);
    expect(await scene.holder('spin')).toMatchObject({ pod: 'spin-a' });
  });
});
