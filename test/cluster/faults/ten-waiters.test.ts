/** Waiters that were created in the same second are granted the lock in the order of their creation. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RawPod } from '../../../src/core/raw-pod.ts';
import { openTestKube } from '../../support/cluster.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../../support/fault-scene.ts';
import { violations } from '../../support/history.ts';
import type { Kube } from '../../support/kube.ts';
import { waitFor } from '../../support/wait.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;
/** Names in the order in which the API server wrote the Pods. */
let created: readonly string[];
/** The name of the one that is deleted while it waits. */
let cancelled: string;

const NAMES = ['mike', 'alpha', 'zulu', 'golf', 'papa', 'bravo', 'tango', 'echo', 'november', 'delta'];

/** By second, then by revision, which orders the Pods of one second (KEP-5504). */
const byCreation = ({ metadata: a }: RawPod, { metadata: b }: RawPod): number =>
  (a.creationTimestamp ?? '').localeCompare(b.creationTimestamp ?? '') ||
  Number(BigInt(a.resourceVersion) - BigInt(b.resourceVersion));

describe.skipIf(cluster.provider !== 'native')('ten waiters that were created in the same second', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'ten');
    await scene.holderAndWaiters('billing', ['holder']);
    await sleep(1000 - (Date.now() % 1000));
    const pods = await Promise.all(
      NAMES.map((name) => scene.run({ lock: 'billing', name, runMs: 300, spec: { restartPolicy: 'Never' } })),
    );
    created = pods.toSorted(byCreation).map(({ metadata }) => metadata.name);
    const seconds = new Set(pods.map(({ metadata }) => metadata.creationTimestamp)).size;
    console.log(`FIGURE ten Pods were created within ${seconds} second(s), in the order ${created.join(', ')}`);
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it('are queued in the order of their creation', async () => {
    const places = await waitFor('ten places in the queue', async () => {
      const pods = await Promise.all(created.map((name) => scene.readPod(name)));
      const places = pods.map(({ metadata }) => metadata.annotations?.['kilit.dev/queued-at']);
      return places.every((place) => place !== undefined) && places;
    });
    const queued = created.map((name, index) => ({ name, place: places[index] ?? '' }));
    expect(queued.toSorted((a, b) => Number(BigInt(a.place) - BigInt(b.place))).map(({ name }) => name)).toEqual(
      created,
    );
  });

  it('are cancelled by deleting them: the others keep their places (argoproj/argo-workflows#10733)', async () => {
    const queue = await queueOf(NAMES.length);
    cancelled = queue[4] ?? '';
    await scene.deletePod(cancelled);
    expect(await queueOf(NAMES.length - 1)).toEqual(queue.filter((name) => name !== cancelled));
  });

  it('are granted in the order of the queue, each with a greater token', async () => {
    const queue = await queueOf(NAMES.length - 1);
    const startedAt = Date.now();
    await scene.deletePod('holder');
    const lives = await waitFor(
      'ten programs',
      async () => {
        const lives = await scene.lives('billing');
        return lives.length > queue.length && lives;
      },
      { seconds: 150 },
    );
    figure('nine hand-overs, with programs of 0.3 s', Date.now() - startedAt);
    expect(lives.map(({ pod }) => pod)).toEqual(['holder', ...queue]);
    expect(queue).not.toContain(cancelled);
    expect(violations(await scene.history('billing'))).toEqual([]);
  });

  const queueOf = (length: number): Promise<readonly string[]> =>
    waitFor(`${length} Pods that can be granted the lock`, async () => {
      const { queue = [] } = (await scene.readLock('billing')).status ?? {};
      const able = queue.filter(({ reason }) => reason === 'Waiting').map(({ name }) => name);
      return queue.length === length && able.length === length && able;
    });
});
