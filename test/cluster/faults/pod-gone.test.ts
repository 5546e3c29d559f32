/**
 * `takeover: PodGone`: whatever is said about the holder's Pod, the next waits until the kubelet has reported its end.
 *
 * kubernetes/kubernetes#61832: the replacement of a force-deleted Pod starts while the first still runs on a silent node.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { podView } from '../../../src/core/pod.ts';
import { TEST_IMAGE } from '../../../tools/cluster/index.ts';
import { openTestKube } from '../../support/cluster.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../../support/fault-scene.ts';
import { violations } from '../../support/history.ts';
import type { Kube } from '../../support/kube.ts';
import { scaleOperator } from '../../support/operator-process.ts';
import { condition } from '../../support/scene.ts';
import { staysSo, waitFor } from '../../support/wait.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;

const FINALIZER = 'kilit.dev/holder';
const lockSpec = { leaseDurationSeconds: 5, takeoverDelaySeconds: 0, takeover: 'PodGone' };
const POD_GARBAGE_COLLECTOR = {
  kind: 'user',
  name: 'system:serviceaccount:kube-system:pod-garbage-collector',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
} as const;

const finalizersOf = async (pod: string) => (await scene.readPod(pod)).metadata.finalizers ?? [];
const isGone = async (path: string) => (await kube.ask('GET', path)).status === 404;
const silent = (lock: string) =>
  waitFor(
    `lock ${lock} to say that nothing is heard of its holder`,
    async () => {
      const held = condition(await scene.readLock(lock), 'Held');
      return held?.reason === 'HolderSilent' && held;
    },
    { seconds: 150 },
  );

describe.skipIf(cluster.provider !== 'native')('by takeover PodGone', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'podgone');
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it('a force-deleted holder whose kubelet is away is followed only after its kubelet came back', async () => {
    const locks = ['forced', 'collected'];
    const spec = { terminationGracePeriodSeconds: 5 };
    await Promise.all(
      locks.map((lock) => scene.holderAndWaiters(lock, [`${lock}-a`, `${lock}-b`], { lockSpec, spec })),
    );
    for (const lock of locks) {
      expect(await finalizersOf(`${lock}-a`)).toContain(FINALIZER);
      expect(await finalizersOf(`${lock}-b`)).not.toContain(FINALIZER);
      expect((await scene.readLease(lock)).metadata.annotations).toHaveProperty(['kilit.dev/takeover'], 'PodGone');
    }
    await scene.node.stopKubelet();
    const deletedAt = Date.now();
    // What the garbage collector does to the Pods of a node that is gone.
    await kube.must('PATCH', `${scene.podPath('collected-a')}/status`, {
      as: POD_GARBAGE_COLLECTOR,
      body: { status: { phase: 'Failed' } },
    });
    for (const lock of locks) await scene.deletePod(`${lock}-a`, 0);
    const said = await Promise.all(locks.map(silent));
    figure('said that nothing is heard of the holders after their forced deletion', Date.now() - deletedAt);
    for (const { message } of said) {
      expect(message).toContain('The Pod is being deleted; until then its object stays (finalizer kilit.dev/holder).');
      expect(message).toMatch(/run: kilit break (forced|collected) -n podgone-/);
    }
    await staysSo('nobody is granted these locks', 15, async () => {
      const holders = await Promise.all(locks.map((lock) => scene.holder(lock)));
      return holders.every((holder, index) => holder?.pod === `${locks[index]}-a`);
    });
    for (const lock of locks) expect(await scene.isAlive(`${lock}-a`, 'app')).toBe(true);

    const backAt = Date.now();
    await scene.node.startKubelet();
    for (const lock of locks) {
      const next = await scene.runs(lock, `${lock}-b`);
      figure(`next program of lock ${lock} started after the kubelet came back`, next.from - backAt);
      // Nobody wrote late: that is what PodGone is for.
      expect(violations(await scene.history(lock))).toEqual([]);
      await waitFor(`the object of Pod ${lock}-a to go`, () => isGone(scene.podPath(`${lock}-a`)));
      expect((await scene.readLease(lock)).metadata.annotations).toHaveProperty(['kilit.dev/takeover'], 'PodGone');
    }
  }, 300_000);

  it('an ordinary deletion and a forced one pass the lock on at once while the kubelet is there', async () => {
    await scene.holderAndWaiters('plain', ['plain-a', 'plain-b', 'plain-c'], { lockSpec });
    for (const [former, next, seconds] of [
      ['plain-a', 'plain-b', undefined],
      ['plain-b', 'plain-c', 0],
    ] as const) {
      const deletedAt = Date.now();
      await scene.deletePod(former, seconds);
      const life = await scene.runs('plain', next);
      figure(
        `next program started after ${seconds === 0 ? 'a forced' : 'an ordinary'} deletion`,
        life.from - deletedAt,
      );
      await waitFor(`the object of Pod ${former} to go`, () => isGone(scene.podPath(former)));
    }
    expect(violations(await scene.history('plain'))).toEqual([]);
  });

  it('an operator that was away while the holder ended finds the proof', async () => {
    await scene.holderAndWaiters('missed', ['missed-a', 'missed-b'], { lockSpec });
    await scaleOperator(kube, 0);
    let backAt = 0;
    try {
      await scene.deletePod('missed-a');
      const ended = await waitFor('the end of the holder', async () => {
        const pod = await scene.readPod('missed-a');
        return podView(pod, 0, undefined).confirmedDead && pod;
      });
      expect(ended.metadata).toMatchObject({ deletionTimestamp: expect.any(String), finalizers: [FINALIZER] });
      await staysSo('the object stays', 5, async () => (await finalizersOf('missed-a')).includes(FINALIZER));
    } finally {
      backAt = Date.now();
      await scaleOperator(kube, 2);
    }
    const next = await scene.runs('missed', 'missed-b');
    figure('next program started after the operators were scaled up again', next.from - backAt);
    await waitFor('the object of the former holder to go', () => isGone(scene.podPath('missed-a')));
    expect(violations(await scene.history('missed'))).toEqual([]);
  });

  it('a holder that was stopped and restarted in place while it was cut off is followed when it is deleted', async () => {
    // The kubelet has forgotten the ends of its programs by then, and a sidecar that is cut off cannot release.
    await scene.holderAndWaiters('restarted', ['restarted-a', 'restarted-b'], { lockSpec });
    await scene.node.cutPod(scene.uid('restarted-a'));
    await waitFor('the restart of the holder', async () => {
      const { status } = await scene.readPod('restarted-a');
      const sidecar = status?.initContainerStatuses?.find(({ name }) => name === 'kilit');
      return sidecar?.restartCount === 1 && sidecar.state?.running !== undefined;
    });
    await silent('restarted');
    expect((await scene.holder('restarted'))?.pod).toBe('restarted-a');
    const deletedAt = Date.now();
    await scene.deletePod('restarted-a');
    const next = await scene.runs('restarted', 'restarted-b');
    figure('next program started after the deletion of a holder that waited, cut off', next.from - deletedAt);
    expect(violations(await scene.history('restarted'))).toEqual([]);
    await waitFor('the object of the former holder to go', () => isGone(scene.podPath('restarted-a')));
  });

  it('the Pods of a Job hold and let go, beside the finalizer of the Job', async () => {
    await scene.lock('jobs', lockSpec);
    const container = { name: 'app', image: TEST_IMAGE, imagePullPolicy: 'Never' };
    const job = (name: string) => ({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name, labels: { 'kilit.dev/lock': 'jobs' } },
      spec: {
        template: {
          spec: { restartPolicy: 'Never', containers: [{ ...container, command: ['node', '-e', ''] }] },
        },
      },
    });
    const path = `/apis/batch/v1/namespaces/${scene.namespace}/jobs`;
    for (const name of ['first', 'second']) await kube.must('POST', path, { body: job(name) });
    for (const name of ['first', 'second']) {
      await waitFor(`Job ${name} to complete`, async () => {
        const { status } = await kube.must('GET', `${path}/${name}`);
        return (status as { succeeded?: number }).succeeded === 1;
      });
    }
    await waitFor('their Pods to have no finalizers', async () => {
      const { items } = await kube.must('GET', `${scene.podPath()}?labelSelector=kilit.dev%2Flock%3Djobs`);
      const pods = items as { metadata: { finalizers?: string[] } }[];
      return pods.length === 2 && pods.every(({ metadata }) => (metadata.finalizers ?? []).length === 0);
    });
  });
});
