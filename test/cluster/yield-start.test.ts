/** A holder whose program does not start hands the lock on, and one that has held for long enough. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { TEST_IMAGE } from '../../tools/cluster/index.ts';
import { openTestKube } from '../support/cluster.ts';
import { openTestCluster } from '../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../support/fault-scene.ts';
import { violations } from '../support/history.ts';
import type { Kube } from '../support/kube.ts';
import { staysSo, waitFor } from '../support/wait.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;

const SPEC = { leaseDurationSeconds: 15, takeoverDelaySeconds: 0, startDeadlineSeconds: 10 };

describe.skipIf(cluster.provider !== 'native').concurrent('a holder', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'start');
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it('in a crash loop hands the lock on after startDeadlineSeconds, and carries a mark of it', async () => {
    const lock = 'crash';
    await scene.lock(lock, SPEC);
    await scene.run({ lock, name: 'crash-a', runMs: 500 });
    const first = await scene.runs(lock, 'crash-a');
    await scene.run({ lock, name: 'crash-b' });
    const next = await scene.runs(lock, 'crash-b');
    figure('first start of a crash loop → next program running, start deadline 10 s', next.from - first.from);
    expect(next.from - first.from).toBeGreaterThan(9_000);
    const { metadata } = await scene.readPod('crash-a');
    expect(metadata.annotations?.['kilit.dev/not-started']).toBe(first.token.toString());
    expect(violations(await scene.history(lock), { sameGrant: 'crash-a' })).toEqual([]);
  });

  it('keeps the lock in a crash loop while nobody else could be granted it', async () => {
    const lock = 'alone';
    await scene.lock(lock, SPEC);
    await scene.run({ lock, name: 'alone-a', runMs: 500 });
    const first = await scene.runs(lock, 'alone-a');
    await staysSo('the same grant', 25, async () => {
      const { metadata } = await scene.readLease(lock);
      return (
        metadata.annotations?.['kilit.dev/fencing-token'] === first.token.toString() &&
        metadata.annotations['kilit.dev/yield'] === undefined
      );
    });
  });

  it('is not asked while its init container works, longer than startDeadlineSeconds', async () => {
    const lock = 'migrate';
    await scene.lock(lock, SPEC);
    const migration = {
      name: 'migrate',
      image: TEST_IMAGE,
      imagePullPolicy: 'Never',
      command: ['node', '-e', 'setTimeout(() => {}, 20_000)'],
    };
    await scene.run({ lock, name: 'migrate-a', spec: { initContainers: [migration] } });
    await scene.holds(lock, 'migrate-a');
    await scene.run({ lock, name: 'migrate-b' });
    const { token } = await scene.runs(lock, 'migrate-a');
    const { metadata } = await scene.readLease(lock);
    expect(metadata.annotations).toMatchObject({ 'kilit.dev/fencing-token': token.toString() });
    expect(metadata.annotations).not.toHaveProperty('kilit.dev/yield');
  });

  it('hands the lock on after maxHoldSeconds, to the next in line and then back', async () => {
    const lock = 'turns';
    await scene.lock(lock, { leaseDurationSeconds: 15, takeoverDelaySeconds: 0, maxHoldSeconds: 10 });
    await scene.run({ lock, name: 'turn-a' });
    const first = await scene.runs(lock, 'turn-a');
    await scene.run({ lock, name: 'turn-b' });
    const { from, token } = await scene.runs(lock, 'turn-b');
    const third = await scene.runs(lock, 'turn-a', { times: 2 });
    const [second = third] = await scene.lives(lock, 'turn-b');
    figure('turn of a holder with maxHoldSeconds 10', second.to - from);
    const [former = first] = await scene.lives(lock, 'turn-a');
    figure('between two turns no program ran', from - former.to);
    expect(second.to - from).toBeGreaterThan(9_000);
    expect(third.token).toBeGreaterThan(token);
    expect(violations(await scene.history(lock))).toEqual([]);
    await waitFor('the Pod event of the yield', async () => {
      const { items } = await kube.must('GET', `/apis/events.k8s.io/v1/namespaces/${scene.namespace}/events`);
      return (items as { reason: string; type: string; regarding: { name: string } }[]).some(
        ({ reason, type, regarding }) => reason === 'Yielded' && type === 'Normal' && regarding.name === 'turn-a',
      );
    });
  });
});
