/**
 * `onRenewalFailure: ContinueFenced`: the API server is cut off from the holder for longer than its lease.
 *
 * NVIDIA/gpu-operator#772, kubernetes-sigs/controller-runtime#1774, kedacore/keda#2836: an API server that is away for a
 * while makes every elected program crash, again and again.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../../support/cluster.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../../support/fault-scene.ts';
import { violations } from '../../support/history.ts';
import type { Kube } from '../../support/kube.ts';
import { condition } from '../../support/scene.ts';
import { staysSo, waitFor } from '../../support/wait.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;

const lockSpec = { leaseDurationSeconds: 5, takeoverDelaySeconds: 0, onRenewalFailure: 'ContinueFenced' };
/** Three leases: by Stop the program would be dead after one. */
const CUT_SECONDS = 15;

const pidOf = async (pod: string) => (await scene.node.pidsOfPod(scene.uid(pod))).get('app')?.[0];
const reasonOfHeld = async (lock: string) => condition(await scene.readLock(lock), 'Held')?.reason;
const eventsOf = async (pod: string) => {
  const { items } = await kube.must('GET', `/apis/events.k8s.io/v1/namespaces/${scene.namespace}/events`);
  return (items as { reason: string; note: string; regarding: { name: string } }[]).filter(
    ({ regarding }) => regarding.name === pod,
  );
};

describe.skipIf(cluster.provider !== 'native').concurrent('by onRenewalFailure ContinueFenced', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'fenced');
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it.each([
    { lock: 'alone', takeover: 'Lease' },
    { lock: 'gone', takeover: 'PodGone' },
  ])(
    'a holder that nobody follows (takeover $takeover) runs on, and holds again with the same token',
    async (given) => {
      const { lock, takeover } = given;
      const holder = `${lock}-a`;
      // By PodGone time passes nothing on, so a waiter changes nothing.
      const names = takeover === 'PodGone' ? [holder, `${lock}-b`] : [holder];
      const former = await scene.holderAndWaiters(lock, names, { lockSpec: { ...lockSpec, takeover } });
      const pid = await pidOf(holder);
      await scene.node.cutPod(scene.uid(holder));
      await waitFor('the lock to say that nothing is heard', async () => (await reasonOfHeld(lock)) === 'HolderSilent');
      await staysSo('the program runs on', CUT_SECONDS, async () => (await pidOf(holder)) === pid);

      const healedAt = Date.now();
      await scene.node.healPod(scene.uid(holder));
      await waitFor('the lock to hear of its holder', async () => (await reasonOfHeld(lock)) === 'Confirmed');
      figure(`renewed again after the healing, lease 5 s, takeover ${takeover}`, Date.now() - healedAt);
      await staysSo('the program runs on', 5, async () => (await pidOf(holder)) === pid);
      expect(await scene.holder(lock)).toEqual({ pod: holder, token: former.token.toString() });
      expect(await scene.lives(lock)).toHaveLength(1);
      const { status } = await scene.readPod(holder);
      for (const { name, restartCount } of [
        ...(status?.initContainerStatuses ?? []),
        ...(status?.containerStatuses ?? []),
      ]) {
        expect([name, restartCount]).toEqual([name, 0]);
      }
      await waitFor('the event', async () => (await eventsOf(holder)).some(({ reason }) => reason === 'Renewed'));
    },
  );

  it('a holder that was followed is stopped once it can see that, once, and waits', async () => {
    const lock = 'followed';
    const former = await scene.holderAndWaiters(lock, ['followed-a', 'followed-b'], { lockSpec });
    const pid = await pidOf('followed-a');
    const cutAt = Date.now();
    await scene.node.cutPod(scene.uid('followed-a'));
    const next = await scene.runs(lock, 'followed-b');
    figure('next program started after the cut, lease 5 s, delay 5 s', next.from - cutAt);
    expect(next.token).toBeGreaterThan(former.token);
    // Two programs: what the guard is for.
    await staysSo('the former program runs on', CUT_SECONDS, async () => (await pidOf('followed-a')) === pid);

    const healedAt = Date.now();
    await scene.node.healPod(scene.uid('followed-a'));
    await waitFor('the end of the former program', async () => (await pidOf('followed-a')) !== pid);
    const [late] = await scene.lives(lock, 'followed-a');
    figure('former program dead after the healing', (late?.to ?? 0) - healedAt);
    await scene.waits(lock, ['followed-a']);
    const restarts = async () => {
      const { status } = await scene.readPod('followed-a');
      return status?.initContainerStatuses?.find(({ name }) => name === 'kilit-reset')?.restartCount;
    };
    // The kubelet reports the restart a little later.
    await waitFor('the restart', async () => (await restarts()) === 1);
    await staysSo('it waits, and is not restarted again', 15, async () => {
      const seen = { restarts: await restarts(), lives: (await scene.lives(lock)).length };
      if (seen.restarts !== 1 || seen.lives !== 2) throw new Error(JSON.stringify(seen));
      return true;
    });
    expect(await scene.holder(lock)).toEqual({ pod: 'followed-b', token: next.token.toString() });
    const told = (await eventsOf('followed-a')).find(
      ({ reason, note }) => reason === 'Lost' && note.includes('HolderChanged'),
    );
    expect(told?.note).toContain(former.token.toString());
    expect(violations(await scene.history(lock), { mayWriteLate: 'followed-a' })).toEqual([]);

    await scene.deletePod('followed-b');
    await scene.runs(lock, 'followed-a', { times: 2 });
    expect(violations(await scene.history(lock), { mayWriteLate: 'followed-a' })).toEqual([]);
  });
});
