/** `takeover: PodGone`: each way by which a Pod loses its finalizer, so that none stays in `Terminating` for ever. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../support/cluster.ts';
import type { Kube } from '../support/kube.ts';
import { condition, Scene } from '../support/scene.ts';
import { staysSo, waitFor } from '../support/wait.ts';

let kube: Kube;
let scene: Scene;

const FINALIZER = 'kilit.dev/holder';
const POD_GONE = { leaseDurationSeconds: 5, takeoverDelaySeconds: 0, takeover: 'PodGone' };
const finalizersOf = async (pod: string) => (await scene.readPod(pod)).metadata.finalizers ?? [];
const gone = (what: string, path: string) =>
  waitFor(`${what} to be gone`, async () => (await kube.ask('GET', path)).status === 404);

async function holderAndWaiter(lock: string): Promise<void> {
  await scene.lock(lock, POD_GONE);
  await scene.pod({ lock, name: `${lock}-a` });
  await scene.started(`${lock}-a`);
  await scene.pod({ lock, name: `${lock}-b` });
  await waitFor('the waiter to wait', async () => (await scene.readLock(lock)).status?.waiters === 1);
}

describe('a Pod with the finalizer of takeover PodGone', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await Scene.open(kube, 'podgone');
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it('keeps it when takeover is changed back while it holds, and loses it with the grant; the next needs none', async () => {
    await holderAndWaiter('back');
    await kube.must('PATCH', scene.lockPath('back'), { body: { spec: { takeover: 'Lease' } } });
    await staysSo('the holder keeps it', 3, async () => (await finalizersOf('back-a')).includes(FINALIZER));
    expect((await scene.readLease('back')).metadata.annotations).toHaveProperty(['kilit.dev/takeover'], 'PodGone');
    await scene.deletePod('back-a');
    await scene.started('back-b');
    await gone('the former holder', scene.podPath('back-a'));
    expect(await finalizersOf('back-b')).toEqual([]);
    const { metadata } = await scene.readLease('back');
    expect(metadata.annotations).not.toHaveProperty(['kilit.dev/takeover']);
    expect((await scene.readLock('back')).status?.terms).toMatchObject({ takeover: 'Lease' });
  });

  it('holds up the forced deletion of its lock until it is deleted itself, which the lock says', async () => {
    await holderAndWaiter('forced');
    await kube.must('PATCH', scene.lockPath('forced'), {
      body: { metadata: { annotations: { 'kilit.dev/force-delete': 'true' } } },
    });
    await kube.must('DELETE', scene.lockPath('forced'));
    // Its program is stopped, and it waits behind the gate.
    await waitFor('the restart of the holder', async () => {
      const { status } = await scene.readPod('forced-a');
      return (status?.initContainerStatuses?.find(({ name }) => name === 'kilit-reset')?.restartCount ?? 0) > 0;
    });
    await staysSo('the lock waits', 18, async () => (await kube.ask('GET', scene.lockPath('forced'))).status === 200);
    expect(condition(await scene.readLock('forced'), 'Held')).toMatchObject({
      status: 'Unknown',
      reason: 'PreviousHolder',
      message: expect.stringMatching(/while Pod forced-a held the lock, by takeover PodGone: .* Delete the Pod\. /),
    });
    await scene.deletePod('forced-a');
    await gone('the lock', scene.lockPath('forced'));
    await gone('the holder', scene.podPath('forced-a'));
    await scene.deletePod('forced-b');
    await gone('the waiter', scene.podPath('forced-b'));
  });

  it('does not keep its namespace', async () => {
    await using other = await Scene.open(kube, 'ending');
    await other.lock('ending', POD_GONE);
    await other.pod({ lock: 'ending', name: 'holder' });
    await other.started('holder');
    await other.pod({ lock: 'ending', name: 'waiter' });
    const path = `/api/v1/namespaces/${other.namespace}`;
    await kube.must('DELETE', path);
    await gone('the namespace', path);
  });
});
