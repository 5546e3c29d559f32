/**
 * A waiter that cannot start, or cannot answer, does not block the queue, and gets its turn when it has healed.
 *
 * argoproj/argo-workflows#17013 (a dead waiter blocks a free lock), kubernetes/kubernetes#107827 (a stuck image pull).
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { KILIT_IMAGE } from '../../../tools/cluster/index.ts';
import { openTestKube } from '../../support/cluster.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../../support/fault-scene.ts';
import { violations } from '../../support/history.ts';
import type { Kube } from '../../support/kube.ts';
import { waitFor } from '../../support/wait.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;

beforeAll(async () => {
  kube = openTestKube();
  scene = await FaultScene.openFaults(kube, cluster, 'stuck');
});
afterAll(async () => {
  await scene?.[Symbol.asyncDispose]();
  kube?.close();
});

/** Waits until the queue gives this reason for this Pod. */
const shows = (
  lock: string,
  pod: string,
  reason: 'Waiting' | 'SidecarNotRunning',
  message: RegExp = /./,
): Promise<unknown> =>
  waitFor(`Pod ${pod} to have reason ${reason}`, async () => {
    const { queue } = (await scene.readLock(lock)).status ?? {};
    const waiter = queue?.find(({ name }) => name === pod);
    if (waiter?.reason === reason && message.test(waiter.message ?? '')) return true;
    throw new Error(JSON.stringify(queue));
  });

describe.skipIf(cluster.provider !== 'native')('a waiter whose sidecar image cannot be pulled', () => {
  it('is passed over, and starts when it can', async () => {
    const lock = 'image';
    const images = (...args: string[]): Promise<string> => scene.node.ctr(['images', ...args]);
    const kept = `${KILIT_IMAGE}-kept`;
    await scene.holderAndWaiters(lock, ['image-a']);
    await images('tag', '--force', KILIT_IMAGE, kept);
    try {
      await images('remove', '--sync', KILIT_IMAGE);
      await scene.run({ lock, name: 'image-b' });
      // After the second failure the kubelet waits 20 s, which is time enough for another Pod.
      await waitFor('two failed pulls', async () => (await failedPulls('image-b')) >= 2);
    } finally {
      await images('tag', '--force', kept, KILIT_IMAGE);
      await images('remove', kept);
    }
    await shows(lock, 'image-b', 'SidecarNotRunning', /: (ErrImagePull|ImagePullBackOff)\.$/);
    await scene.run({ lock, name: 'image-c' });
    await shows(lock, 'image-c', 'Waiting');
    await scene.deletePod('image-a');
    await scene.runs(lock, 'image-c');
    await scene.waits(lock, ['image-b']);
    await scene.deletePod('image-c');
    await scene.runs(lock, 'image-b');
    expect((await scene.lives(lock)).map(({ pod }) => pod)).toEqual(['image-a', 'image-c', 'image-b']);
    expect(violations(await scene.history(lock))).toEqual([]);
  });

  async function failedPulls(pod: string): Promise<number> {
    const query = `fieldSelector=involvedObject.name%3D${pod},reason%3DFailed`;
    const { items } = await kube.must('GET', `/api/v1/namespaces/${scene.namespace}/events?${query}`);
    const events = items as { message: string; count?: number }[];
    const pulls = events.filter(({ message }) => message.startsWith('Failed to pull image'));
    return pulls.reduce((sum, { count }) => sum + (count ?? 1), 0);
  }
});

describe.skipIf(cluster.provider !== 'native').concurrent('a waiter', () => {
  it('whose volume is missing is passed over and keeps its place', async () => {
    const lock = 'volume';
    await scene.holderAndWaiters(lock, ['volume-a']);
    await scene.run({
      lock,
      name: 'volume-b',
      volumes: [{ name: 'late', secret: { secretName: 'late' } }],
      volumeMounts: [{ name: 'late', mountPath: '/late' }],
    });
    await shows(lock, 'volume-b', 'SidecarNotRunning');
    for (const name of ['volume-c', 'volume-d']) {
      await scene.run({ lock, name });
      await shows(lock, name, 'Waiting');
    }
    await scene.deletePod('volume-a');
    await scene.runs(lock, 'volume-c');
    expect(await scene.lives(lock, 'volume-b')).toEqual([]);

    await kube.must('POST', `/api/v1/namespaces/${scene.namespace}/secrets`, { body: { metadata: { name: 'late' } } });
    await scene.waits(lock, ['volume-b', 'volume-d'], 150);
    await scene.deletePod('volume-c');
    await scene.runs(lock, 'volume-b');
    expect(violations(await scene.history(lock))).toEqual([]);
  });

  it.each([
    {
      how: 'is cut off from the API server',
      lock: 'cut',
      hurt: (pod: string) => scene.node.cutPod(scene.uid(pod)),
      heal: (pod: string) => scene.node.healPod(scene.uid(pod)),
    },
    {
      how: 'has a frozen sidecar',
      lock: 'frozen',
      hurt: (pod: string) => scene.kill(pod, 'kilit', 'SIGSTOP'),
      heal: (pod: string) => scene.kill(pod, 'kilit', 'SIGCONT'),
    },
  ])('that $how and does not confirm its grant goes to the end', async ({ how, lock, hurt, heal }) => {
    const [a, b, c, d] = [`${lock}-a`, `${lock}-b`, `${lock}-c`, `${lock}-d`];
    await scene.holderAndWaiters(lock, [a, b, c, d]);
    await hurt(b);
    await scene.deletePod(a);
    await scene.holds(lock, b);
    const grantedAt = Date.now();
    const next = await scene.runs(lock, c);
    figure(`passed over because it ${how}`, next.from - grantedAt);
    expect(await scene.lives(lock, b)).toEqual([]);
    await heal(b);
    await scene.waits(lock, [d, b]);
    await scene.deletePod(c);
    await scene.runs(lock, d);
    const endedAt = Date.now();
    await scene.deletePod(d);
    const late = await scene.runs(lock, b);
    figure(`started in its turn, after it ${how}`, late.from - endedAt);
    expect((await scene.lives(lock)).map(({ pod }) => pod)).toEqual([a, c, d, b]);
    expect(violations(await scene.history(lock))).toEqual([]);
  });
});
