import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../support/cluster.ts';
import type { Kube } from '../support/kube.ts';
import { condition, Scene } from '../support/scene.ts';
import { staysSo, waitFor } from '../support/wait.ts';

let kube: Kube;
let scene: Scene;
beforeAll(async () => {
  kube = openTestKube();
  scene = await Scene.open(kube, 'handover');
});
afterAll(async () => {
  await scene[Symbol.asyncDispose]();
  kube.close();
});

describe('of three gated Pods', () => {
  it('exactly one program runs, and its environment, its files and the Lease agree on the token', async () => {
    await scene.lock('one');
    for (const name of ['one-a', 'one-b', 'one-c']) await scene.pod({ lock: 'one', name });
    const { pod, token } = await waitFor('a holder', () => scene.holder('one'));
    const started = await scene.started(pod);
    expect(started.env).toBe(token);
    expect(started.file).toBe(token);
    const shown = await waitFor('the display of the token', async () =>
      (await scene.logs(pod)).find((line) => line.display === token),
    );
    expect(Number(shown.at) - started.at).toBeLessThan(2000);

    const others = ['one-a', 'one-b', 'one-c'].filter((name) => name !== pod);
    await staysSo('no other program starts', 3, async () =>
      (await Promise.all(others.map((name) => scene.starts(name)))).every((starts) => starts.length === 0),
    );
    const lock = await scene.readLock('one');
    expect(lock.status).toMatchObject({ fencingToken: token, holder: { kind: 'Pod', name: pod }, waiters: 2 });
    expect(condition(lock, 'Held')).toMatchObject({ status: 'True', reason: 'Confirmed' });
    expect(lock.status?.queue?.map((waiter) => waiter.name).toSorted()).toEqual(others.toSorted());
    expect(lock.status?.queue?.[0]?.message).toContain(pod);
  });

  it('the next starts when the holder is deleted, with a greater token, and carries the leader label alone', async () => {
    const before = await waitFor('a holder', () => scene.holder('one'));
    await scene.deletePod(before.pod);
    const after = await waitFor('the next holder', async () => {
      const holder = await scene.holder('one');
      return holder !== undefined && holder.pod !== before.pod ? holder : undefined;
    });
    expect(BigInt(after.token)).toBeGreaterThan(BigInt(before.token));
    expect((await scene.started(after.pod)).env).toBe(after.token);
    await waitFor('exactly one leader label', async () => {
      const list = await kube.must('GET', `${scene.podPath()}?labelSelector=kilit.dev%2Fleader%3Dtrue`);
      const names = (list.items as { metadata: { name: string } }[]).map((item) => item.metadata.name);
      return names.length === 1 && names[0] === after.pod;
    });
  });

  it('the next starts when the program of a holder that is not restarted dies', async () => {
    await scene.lock('two');
    const once = { restartPolicy: 'Never' };
    await scene.pod({ lock: 'two', name: 'two-a', spec: once, program: 'setTimeout(() => process.exit(3), 1500)' });
    await scene.holds('two', 'two-a');
    await scene.pod({ lock: 'two', name: 'two-b' });
    await scene.holds('two', 'two-b');
    await waitFor(
      'the phase, which the kubelet holds back',
      async () => (await scene.readPod('two-a')).status?.phase === 'Failed',
    );
    await waitFor('the event of the confirmed death', async () => {
      const events = await kube.must('GET', `/apis/events.k8s.io/v1/namespaces/${scene.namespace}/events`);
      return (events.items as { reason: string; regarding: { kind: string } }[]).some(
        (event) => event.reason === 'ConfirmedDeath' && event.regarding.kind === 'DistributedLock',
      );
    });
  });

  it('a lock is freed when the last holder has ended, and granted at once to a later Pod', async () => {
    await scene.lock('three');
    await scene.pod({ lock: 'three', name: 'three-a', spec: { restartPolicy: 'Never' }, program: 'process.exit(0)' });
    const freed = await waitFor('the lock to be free after a grant', async () => {
      const lock = await scene.readLock('three');
      return lock.status?.transitions === 1 && condition(lock, 'Held')?.status === 'False' ? lock : undefined;
    });
    expect(freed.status?.holder).toBeUndefined();
    await waitFor(
      'the phase, which the kubelet holds back',
      async () => (await scene.readPod('three-a')).status?.phase === 'Succeeded',
    );
    await scene.pod({ lock: 'three', name: 'three-b' });
    expect(BigInt((await scene.started('three-b')).env)).toBeGreaterThan(BigInt(freed.status?.fencingToken ?? '0'));
  });
});
