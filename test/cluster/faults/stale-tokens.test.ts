/**
 * However a sidecar ends while it holds, and whatever the kubelet learns of it: no program starts with an old token.
 *
 * kubernetes-facts.md: when the record of an exited sidecar is lost the kubelet restarts the sidecar alone, and
 * RestartAllContainers does not act; a kubelet restart opens the startup probe's gate.
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../../support/cluster.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { FaultScene } from '../../support/fault-scene.ts';
import { violations } from '../../support/history.ts';
import type { Kube } from '../../support/kube.ts';
import { waitFor } from '../../support/wait.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;

interface Fault {
  readonly name: string;
  readonly kubeletStopped: boolean;
  readonly recordRemoved: boolean;
  readonly programKilled?: boolean;
  readonly leaseEnds?: boolean;
}

const FAULTS: readonly Fault[] = [
  { name: 'its record is removed', kubeletStopped: false, recordRemoved: true },
  { name: 'the kubelet is away meanwhile', kubeletStopped: true, recordRemoved: false },
  { name: 'the kubelet is away and its record is removed', kubeletStopped: true, recordRemoved: true },
  {
    name: 'the kubelet is away, its record is removed and the program dies too',
    kubeletStopped: true,
    recordRemoved: true,
    programKilled: true,
  },
  {
    name: 'the kubelet is away until the lease has ended, its record is removed and the program dies too',
    kubeletStopped: true,
    recordRemoved: true,
    programKilled: true,
    leaseEnds: true,
  },
];

/** All ways for a sidecar to end, each with and without a Pod that waits; one lock for each. */
const CASES = (['SIGKILL', 'SIGTERM'] as const).flatMap((signal) =>
  [true, false].map((waiter) => ({ signal, waiter, lock: `${signal.toLowerCase()}-${waiter ? 'waiter' : 'alone'}` })),
);

describe.skipIf(cluster.provider !== 'native')('no program starts with an old token when a sidecar ends and', () => {
  beforeAll(() => {
    kube = openTestKube();
  });
  afterEach(async () => {
    await scene?.[Symbol.asyncDispose]();
  });
  afterAll(() => kube?.close());

  it.each(FAULTS)('$name', async ({ kubeletStopped, recordRemoved, programKilled = false, leaseEnds = false }) => {
    scene = await FaultScene.openFaults(kube, cluster, 'stale');
    await Promise.all(
      CASES.map(({ lock, waiter }) =>
        scene.holderAndWaiters(lock, waiter ? [`${lock}-a`, `${lock}-b`] : [`${lock}-a`]),
      ),
    );
    if (kubeletStopped) await scene.node.stopKubelet();
    await Promise.all(
      CASES.map(async ({ lock, signal }) => {
        await scene.kill(`${lock}-a`, 'kilit', signal);
        if (programKilled) await scene.kill(`${lock}-a`, 'app');
        // With a kubelet that runs it is a race, which it may win: then it restarts the whole Pod as it should.
        if (recordRemoved) await scene.forget(`${lock}-a`, 'kilit');
      }),
    );
    if (leaseEnds) await Promise.all(CASES.map(({ lock }) => holdsNoMore(lock, `${lock}-a`)));
    if (kubeletStopped) await scene.node.startKubelet();

    if (kubeletStopped && recordRemoved) await Promise.all(CASES.map(({ lock }) => restartedAlone(`${lock}-a`)));
    const outcomes = await Promise.all(
      CASES.map(async ({ lock, waiter }) => {
        const next = waiter ? `${lock}-b` : `${lock}-a`;
        await scene.runs(lock, next, { times: waiter ? 1 : 2 });
        if (!waiter) return { lock, wrong: violations(await scene.history(lock)) };
        await scene.waits(lock, [`${lock}-a`]);
        await scene.deletePod(next);
        await scene.runs(lock, `${lock}-a`, { times: 2 });
        return { lock, wrong: violations(await scene.history(lock)) };
      }),
    );
    expect(outcomes.filter(({ wrong }) => wrong.length > 0)).toEqual([]);
  });

  const holdsNoMore = (lock: string, pod: string): Promise<unknown> =>
    waitFor(`the end of the lease of Pod ${pod}`, async () => (await scene.holder(lock))?.pod !== pod);

  /** The fault did what it is for: the kubelet started the sidecar once alone, and then with the whole Pod. */
  const restartedAlone = (pod: string): Promise<unknown> =>
    waitFor(`the sidecar of Pod ${pod} to be restarted alone, and then the whole Pod`, async () => {
      const statuses = (await scene.readPod(pod)).status?.initContainerStatuses ?? [];
      const [reset = 0, sidecar = 0] = statuses.map(({ restartCount }) => restartCount);
      return reset > 0 && sidecar > reset;
    });
});
