/**
 * A holder loses the lock while the API server can be reached: the lock changes hands within seconds.
 *
 * Reports behind it: kubernetes/kubernetes#23731 (the loser never learns it), hashicorp/consul#9788 (the child gets
 * SIGTERM 90 s late), fabric8io/kubernetes-client#6020 (after a loss nobody campaigns again).
 */
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../../support/cluster.ts';
import { openTestCluster } from '../../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../../support/fault-scene.ts';
import { violations } from '../../support/history.ts';
import type { Kube } from '../../support/kube.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;

interface Loss {
  readonly lock: string;
  readonly how: string;
  readonly deaf?: boolean;
  readonly lose: (holder: string) => Promise<unknown>;
}

const GARBAGE_COLLECTOR = {
  kind: 'user',
  name: 'system:serviceaccount:kube-system:generic-garbage-collector',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
} as const;

const LOSSES: readonly Loss[] = [
  { lock: 'killed', how: 'its sidecar is killed', lose: (holder) => scene.kill(holder, 'kilit') },
  { lock: 'ended', how: 'its sidecar is told to end', lose: (holder) => scene.kill(holder, 'kilit', 'SIGTERM') },
  {
    lock: 'deaf',
    how: 'its sidecar is killed and its program ignores SIGTERM',
    deaf: true,
    lose: (holder) => scene.kill(holder, 'kilit'),
  },
  {
    lock: 'taken',
    how: 'its Lease is deleted',
    lose: () => kube.must('DELETE', scene.leasePath('taken'), { as: GARBAGE_COLLECTOR }),
  },
];

describe.skipIf(cluster.provider !== 'native').concurrent('the lock changes hands when', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'losses');
  });
  afterEach(() => scene.calm());
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it.each(LOSSES)('$how', async ({ lock, how, deaf = false, lose }) => {
    const [a, b, c] = [`${lock}-a`, `${lock}-b`, `${lock}-c`];
    const former = await scene.holderAndWaiters(lock, [a, b, c], { deaf });
    const lostAt = Date.now();
    await lose(a);
    const next = await scene.runs(lock, b);
    const dead = (await scene.lives(lock, a)).at(-1);
    figure(`program dead after ${how}`, (dead?.to ?? 0) - lostAt);
    figure(`next program started after ${how}`, next.from - lostAt);
    expect(next.from - lostAt).toBeLessThan(60_000);
    expect(next.token).toBeGreaterThan(former.token);
    expect(violations(await scene.history(lock))).toEqual([]);

    // The whole Pod was restarted in place, and waits behind the gate, last in the queue.
    await scene.waits(lock, [c, a]);
    const { status } = await scene.readPod(a);
    const reset = status?.initContainerStatuses?.find(({ name }) => name === 'kilit-reset');
    expect(reset?.restartCount).toBeGreaterThan(0);
    expect(await scene.isAlive(a, 'app')).toBe(false);

    await scene.deletePod(b);
    await scene.runs(lock, c);
    await scene.deletePod(c);
    await scene.runs(lock, a, { times: 2 });
    const history = await scene.history(lock);
    expect(violations(history)).toEqual([]);
    expect((await scene.lives(lock)).map((life) => life.pod)).toEqual([a, b, c, a]);
  });
});
