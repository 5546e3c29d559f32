/**
 * A holder that cannot renew: cut off from the API server, or frozen past its lease.
 *
 * etcd-io/etcd#10811 (a partitioned holder goes on), apache/curator#980 (the timer starts when the connection drops),
 * OptimalBits/bull#308 (nobody renews, both run).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../../support/cluster.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../../support/fault-scene.ts';
import { violations } from '../../support/history.ts';
import type { Kube } from '../../support/kube.ts';
import { staysSo, waitFor } from '../../support/wait.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;

describe.skipIf(cluster.provider !== 'native').concurrent('a holder that cannot renew', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'silent');
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it('because it is cut off from the API server is dead before the next starts', async () => {
    const lock = 'cut';
    await scene.holderAndWaiters(lock, ['cut-a', 'cut-b']);
    const cutAt = Date.now();
    await scene.node.cutPod(scene.uid('cut-a'));
    const next = await scene.runs(lock, 'cut-b');
    const [former] = await scene.lives(lock, 'cut-a');
    figure('program dead after the cut, lease 5 s', (former?.to ?? 0) - cutAt);
    figure('next program started after the cut, lease 5 s, delay 5 s', next.from - cutAt);
    // The deadline is 4.5 s after the last renewal was sent; then the kubelet kills it.
    expect((former?.to ?? Number.POSITIVE_INFINITY) - cutAt).toBeLessThan(4_500 + 10_000);
    expect(violations(await scene.history(lock))).toEqual([]);

    await scene.node.healPod(scene.uid('cut-a'));
    await scene.waits(lock, ['cut-a']);
    await staysSo('the healed Pod waits', 5, async () => (await scene.lives(lock)).length === 2);
    await scene.deletePod('cut-b');
    await scene.runs(lock, 'cut-a', { times: 2 });
    expect(violations(await scene.history(lock))).toEqual([]);
  });

  it('because it is frozen is stopped when it wakes up, without having renewed', async () => {
    const lock = 'frozen';
    const former = await scene.holderAndWaiters(lock, ['frozen-a', 'frozen-b']);
    const frozenAt = Date.now();
    await scene.signalAll('frozen-a', 'SIGSTOP');
    const next = await scene.runs(lock, 'frozen-b');
    figure('next program started after the freeze, lease 5 s, delay 5 s', next.from - frozenAt);
    expect(next.token).toBeGreaterThan(former.token);

    const wokenAt = Date.now();
    await scene.signalAll('frozen-a', 'SIGCONT');
    await scene.waits(lock, ['frozen-a']);
    await sleep(3000);
    const [late, ...others] = await scene.lives(lock, 'frozen-a');
    figure('late program dead after it woke up', (late?.to ?? 0) - wokenAt);
    expect(others).toEqual([]);
    expect((late?.to ?? Number.POSITIVE_INFINITY) - wokenAt).toBeLessThan(15_000);
    expect(await scene.holder(lock)).toEqual({ pod: 'frozen-b', token: next.token.toString() });
    expect(violations(await scene.history(lock), { mayWriteLate: 'frozen-a' })).toEqual([]);
    // By its own clock: it did not even try.
    await waitFor('the event of the loss', async () => {
      const { items } = await kube.must('GET', `/apis/events.k8s.io/v1/namespaces/${scene.namespace}/events`);
      return (items as { reason: string; note: string; regarding: { name: string } }[]).some(
        ({ reason, note, regarding }) =>
          regarding.name === 'frozen-a' && reason === 'Lost' && note.includes('DeadlinePassed'),
      );
    });
  });
});
