/**
 * The program dies alone, killed behind the kubelet's back; its sidecar lives.
 *
 * kubernetes/kubernetes#139991 (freed while the work still runs), redisson/redisson#7272 (renewal outlives the owner).
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

describe.skipIf(cluster.provider !== 'native').concurrent('when its program is killed, a holder', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'program');
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  /** Kills the program and checks that it starts again under the very same grant. */
  const restartsUnderTheSameGrant = async (lock: string, pod: string): Promise<void> => {
    const before = await scene.readLease(lock);
    const [former] = await scene.lives(lock, pod);
    await scene.kill(pod, 'app');
    const again = await scene.runs(lock, pod, { times: 2 });
    expect(again.token).toBe(former?.token);
    const { spec, metadata } = await scene.readLease(lock);
    expect([spec?.acquireTime, spec?.leaseTransitions]).toEqual([
      before.spec?.acquireTime,
      before.spec?.leaseTransitions,
    ]);
    expect(metadata.annotations).toEqual(before.metadata.annotations);
    const { status } = await scene.readPod(pod);
    expect(status?.initContainerStatuses?.map(({ restartCount }) => restartCount)).toEqual([0, 0]);
    expect(violations(await scene.history(lock), { sameGrant: pod })).toEqual([]);
  };

  it('with restartPolicy Always keeps its grant and its token', async () => {
    await scene.holderAndWaiters('always', ['always-a', 'always-b']);
    await restartsUnderTheSameGrant('always', 'always-a');
    expect(await scene.lives('always', 'always-b')).toEqual([]);
  });

  it('with restartPolicy OnFailure keeps it too, until the program has ended well', async () => {
    const lock = 'on-failure';
    await scene.holderAndWaiters(lock, ['job-a', 'job-b'], { spec: { restartPolicy: 'OnFailure' } });
    await restartsUnderTheSameGrant(lock, 'job-a');
    const endedAt = Date.now();
    await scene.kill('job-a', 'app', 'SIGTERM');
    const next = await scene.runs(lock, 'job-b');
    figure('next program started after the program ended well, OnFailure', next.from - endedAt);
    await waitFor(
      'the phase, which the kubelet holds back',
      async () => (await scene.readPod('job-a')).status?.phase === 'Succeeded',
    );
    expect(violations(await scene.history(lock), { sameGrant: 'job-a' })).toEqual([]);
  });

  it('with restartPolicy Never hands over, because its death is confirmed', async () => {
    const lock = 'never';
    await scene.holderAndWaiters(lock, ['never-a', 'never-b'], { spec: { restartPolicy: 'Never' } });
    const killedAt = Date.now();
    await scene.kill('never-a', 'app');
    const next = await scene.runs(lock, 'never-b');
    figure('next program started after the program was killed, Never', next.from - killedAt);
    await waitFor(
      'the phase, which the kubelet holds back',
      async () => (await scene.readPod('never-a')).status?.phase === 'Failed',
    );
    expect(violations(await scene.history(lock))).toEqual([]);
    await waitFor('the event of the confirmed death', async () => {
      const { items } = await kube.must('GET', `/apis/events.k8s.io/v1/namespaces/${scene.namespace}/events`);
      return (items as { reason: string; regarding: { kind: string; name: string } }[]).some(
        ({ reason, regarding }) =>
          reason === 'ConfirmedDeath' && regarding.kind === 'DistributedLock' && regarding.name === lock,
      );
    });
  });
});
