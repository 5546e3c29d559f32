/**
 * The holder's Pod is gone from the API server while its program still runs: its kubelet is away.
 *
 * kubernetes/kubernetes#61832 (two Pods on one volume after a force delete), kubernetes/kubernetes#115844. What the API
 * server then says proves nothing, so the lease has to run out: lease duration, takeover delay and grace period. After
 * that the token alone protects the resource; a program whose kubelet is away is not stopped (design, section 1).
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../../support/cluster.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../../support/fault-scene.ts';
import { violations } from '../../support/history.ts';
import type { Kube } from '../../support/kube.ts';
import { waitFor } from '../../support/wait.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;

const POD_GARBAGE_COLLECTOR = {
  kind: 'user',
  name: 'system:serviceaccount:kube-system:pod-garbage-collector',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
} as const;

const LEASE_SECONDS = 5;
/** The least that covers the kubelet's kills: 2 s for each of two containers, and 1. */
const DELAY_SECONDS = 5;
const GRACE_SECONDS = 5;

describe.skipIf(cluster.provider !== 'native')('a holder that is gone from the API server and lives on', () => {
  const cases = [
    { lock: 'forced', how: 'force-deleted' },
    { lock: 'collected', how: 'marked Failed and deleted by the Pod garbage collector' },
  ];
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'gone');
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it('is followed only after lease, takeover delay and grace period', async () => {
    const spec = { terminationGracePeriodSeconds: GRACE_SECONDS };
    await Promise.all(cases.map(({ lock }) => scene.holderAndWaiters(lock, [`${lock}-a`, `${lock}-b`], { spec })));
    const formerLives = await Promise.all(cases.map(({ lock }) => scene.lives(lock)));
    await scene.node.stopKubelet();
    // What the garbage collector does to the Pods of a node that is gone.
    await kube.must('PATCH', `${scene.podPath('collected-a')}/status`, {
      as: POD_GARBAGE_COLLECTOR,
      body: { status: { phase: 'Failed' } },
    });
    for (const { lock } of cases) await scene.deletePod(`${lock}-a`, 0);

    await Promise.all(
      cases.map(async ({ lock, how }) => {
        const last = await lastRenewal(lock, `${lock}-a`);
        const { spec: granted } = await waitFor(`the grant to Pod ${lock}-b`, async () => {
          const lease = await scene.readLease(lock);
          return lease.spec?.holderIdentity?.startsWith(`${lock}-b_`) === true && lease;
        });
        const waited = Date.parse(granted?.acquireTime ?? '') - last;
        figure(`granted after the last renewal of a holder ${how}; 5 + 5 + 5 s are due`, waited);
        expect(waited).toBeGreaterThan((LEASE_SECONDS + DELAY_SECONDS + GRACE_SECONDS) * 1000 - 100);
        // The former program lives on.
        expect(await scene.isAlive(`${lock}-a`, 'app')).toBe(true);
      }),
    );

    const startedAt = Date.now();
    await scene.node.startKubelet();
    for (const [index, { lock, how }] of cases.entries()) {
      const next = await scene.runs(lock, `${lock}-b`);
      await waitFor(`the end of the orphan ${lock}-a`, async () => !(await scene.isAlive(`${lock}-a`, 'app')));
      const [orphan] = await scene.lives(lock, `${lock}-a`);
      figure(`orphan ${how} dead after its kubelet came back`, (orphan?.to ?? 0) - startedAt);
      figure(
        `orphan ${how} wrote on after the next started (0: not at all)`,
        Math.max(0, (orphan?.to ?? 0) - next.from),
      );
      expect(next.token).toBeGreaterThan(formerLives[index]?.[0]?.token ?? 0n);
      expect(violations(await scene.history(lock), { mayWriteLate: `${lock}-a` })).toEqual([]);
    }
  });

  /** When the holder sent its last renewal: watched until it has lost the lease. */
  async function lastRenewal(lock: string, pod: string): Promise<number> {
    let last = '';
    await waitFor(`the last renewal of Pod ${pod}`, async () => {
      const { spec } = await scene.readLease(lock);
      if (spec?.holderIdentity?.startsWith(`${pod}_`) !== true) return true;
      last = spec.renewTime ?? '';
      return !(await scene.isAlive(pod, 'kilit'));
    });
    return Date.parse(last);
  }
});
