/**
 * Thirty rounds of loss and re-acquisition: five Pods lose their locks six times each, each time in another way, and get
 * them again. (The simulation has a thousand.)
 *
 * fabric8io/kubernetes-client#6020, kubernetes/client-go#1155: after a loss nobody campaigns again.
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
let me: string;

const PODS = ['a', 'b', 'c', 'd', 'e'];
const GARBAGE_COLLECTOR = {
  kind: 'user',
  name: 'system:serviceaccount:kube-system:generic-garbage-collector',
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
} as const;

/** As an administrator would; the token is that of the present grant. */
async function request(lock: string, what: 'break' | 'handover', token: bigint): Promise<void> {
  await waitFor('the status to know the grant', async () => {
    return (await scene.readLock(lock)).status?.fencingToken === String(token);
  });
  const body = {
    metadata: {
      annotations: { [`kilit.dev/${what}`]: JSON.stringify({ token: String(token), by: me, reason: 'a round' }) },
    },
  };
  await kube.must('PATCH', scene.lockPath(lock), { body });
}

const isRestarted = (pod: string, restarts: number): Promise<unknown> =>
  waitFor(`restart ${restarts} of Pod ${pod}`, async () => {
    const { status } = await scene.readPod(pod);
    const reset = status?.initContainerStatuses?.find(({ name }) => name === 'kilit-reset');
    return (reset?.restartCount ?? 0) >= restarts;
  });

/** Lock and Pod have the same name. */
const LOSSES: readonly { readonly how: string; readonly lose: (name: string, token: bigint) => Promise<unknown> }[] = [
  { how: 'sidecar killed', lose: (name) => scene.kill(name, 'kilit') },
  { how: 'sidecar told to end', lose: (name) => scene.kill(name, 'kilit', 'SIGTERM') },
  { how: 'hand-over asked', lose: (name, token) => request(name, 'handover', token) },
  { how: 'grant broken', lose: (name, token) => request(name, 'break', token) },
  { how: 'Lease deleted', lose: (name) => kube.must('DELETE', scene.leasePath(name), { as: GARBAGE_COLLECTOR }) },
  {
    how: 'cut off from the API server',
    lose: async (name) => {
      await scene.node.cutPod(scene.uid(name));
      await waitFor('the program to be stopped', async () => !(await scene.isAlive(name, 'app')), { everyMs: 50 });
      await scene.node.healPod(scene.uid(name));
    },
  },
];

describe.skipIf(cluster.provider !== 'native').concurrent('a Pod that loses its lock', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'rounds');
    me = JSON.parse(await cluster.kubectl(['auth', 'whoami', '-o', 'json'])).status.userInfo.username;
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  it.each(PODS)(
    'six times gets it again six times, with a greater token each time: Pod %s',
    async (name) => {
      await scene.lock(name);
      await scene.run({ lock: name, name, spec: { nodeName: scene.node.name } });
      for (const [round, { how, lose }] of LOSSES.entries()) {
        const life = await scene.runs(name, name, { times: round + 1 });
        const at = Date.now();
        await lose(name, life.token);
        const next = await scene.runs(name, name, { times: round + 2, seconds: 150 });
        figure(`${name}: ${how} → its program runs again, back-off ${Math.floor(2 ** (round - 1))} s`, next.from - at);
        expect(next.token).toBeGreaterThan(life.token);
        await isRestarted(name, round + 1);
      }
      expect(await scene.lives(name)).toHaveLength(LOSSES.length + 1);
      expect(violations(await scene.history(name))).toEqual([]);
    },
    400_000,
  );
});
