/**
 * Rolling updates of a gated Deployment with one replica and the default strategy: the old Pod holds the lock, the new
 * one waits for it, and the Deployment controller ends the old one only when the new one is Ready.
 *
 * LINBIT/k8s-await-election#1 (readiness bound to leadership deadlocks a rolling update).
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../support/cluster.ts';
import { openTestCluster } from '../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../support/fault-scene.ts';
import { type Life, violations } from '../support/history.ts';
import type { Kube } from '../support/kube.ts';
import { staysSo, waitFor } from '../support/wait.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;

describe.skipIf(cluster.provider !== 'native')('a rolling update of a gated Deployment', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'rollout');
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  const deployed = async (
    name: string,
    lockSpec: object = { leaseDurationSeconds: 15, takeoverDelaySeconds: 0 },
  ): Promise<Life> => {
    await scene.lock(name, lockSpec);
    await scene.deploy({ lock: name, name });
    await scene.kubectl('rollout', 'status', `deployment/${name}`, '--timeout=60s');
    return scene.nextLife(name, []);
  };

  /** Changes the template and returns the first program of the new version, once the rollout is complete. */
  const rollOut = async (name: string, ...change: readonly string[]): Promise<Life> => {
    const before = await scene.lives(name);
    const askedAt = Date.now();
    await scene.kubectl(...change);
    const life = await scene.nextLife(name, before);
    figure(`${change.slice(0, 2).join(' ')} → new version running`, life.from - askedAt);
    await scene.kubectl('rollout', 'status', `deployment/${name}`, '--timeout=60s');
    figure(`${change.slice(0, 2).join(' ')} → rollout complete`, Date.now() - askedAt);
    return life;
  };

  it('completes by itself with the default strategy, and so do the next and the rollback', async () => {
    const first = await deployed('default');
    const second = await rollOut('default', 'set', 'env', 'deployment/default', 'VERSION=2');
    expect(second.pod).not.toBe(first.pod);
    expect(second.token).toBeGreaterThan(first.token);
    const third = await rollOut('default', 'rollout', 'restart', 'deployment/default');
    const back = await rollOut('default', 'rollout', 'undo', 'deployment/default');
    const versions = [first, second, third, back].map(({ pod }) => pod.split('-')[1]);
    expect(versions[3]).toBe(versions[1]);
    expect(new Set(versions).size).toBe(3);
    expect(violations(await scene.history('default'))).toEqual([]);
    await waitFor('the event on the lock', async () => {
      const { items } = await kube.must('GET', `/apis/events.k8s.io/v1/namespaces/${scene.namespace}/events`);
      return (items as { reason: string; note: string }[]).some(
        ({ reason, note }) => reason === 'YieldAsked' && note.includes(`${first.pod} (token ${first.token}) was asked`),
      );
    });
  });

  it('to an image that cannot start gives the lock back to the old version, and leaves it there', async () => {
    const first = await deployed('bad-image', {
      leaseDurationSeconds: 15,
      takeoverDelaySeconds: 0,
      startDeadlineSeconds: 10,
    });
    const askedAt = Date.now();
    await scene.kubectl('set', 'image', 'deployment/bad-image', 'app=localhost/nowhere:1');
    const again = await scene.nextLife('bad-image', [first]);
    figure('bad image rolled out → old version running again, start deadline 10 s', again.from - askedAt);
    expect(again.pod).toBe(first.pod);
    expect(again.from - first.to).toBeGreaterThan(10_000);
    await staysSo('the old version runs', 25, async () => (await scene.lives('bad-image')).length === 2);

    const undone = Date.now();
    await scene.kubectl('rollout', 'undo', 'deployment/bad-image');
    await scene.kubectl('rollout', 'status', 'deployment/bad-image', '--timeout=60s');
    figure('rollback of the bad image complete', Date.now() - undone);
    expect(await scene.lives('bad-image')).toHaveLength(2);
    expect(violations(await scene.history('bad-image'))).toEqual([]);
  });
});
