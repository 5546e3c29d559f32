/** Times from the loss of a lock to the death of the holder's programs. */
import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from '../../test/support/wait.ts';
import { TEST_IMAGE } from '../cluster/index.ts';
import { type Bench, measuredPod, PROGRAM, startOf, uidOf } from './bench.ts';
import type { Figure } from './figures.ts';

const LEASE_SECONDS = 15;
/** At the same time, so that it does not take an hour. */
const AT_ONCE = 5;
const DEAF = PROGRAM.replace("process.on('SIGTERM', () => process.exit(0));", "process.on('SIGTERM', () => {});");

interface Case {
  readonly lock: string;
  /** By name. */
  readonly containers: readonly string[];
  readonly deaf: boolean;
}

interface Cause {
  readonly name: string;
  readonly lose: (
    bench: Bench,
    of: { readonly lock: string; readonly uid: string; readonly node: string },
  ) => Promise<unknown>;
  readonly heal?: (bench: Bench, of: { readonly uid: string; readonly node: string }) => Promise<unknown>;
}

/** As an administrator does: the operator takes the Lease for a holder that is no Pod. */
async function breakGrant({ scene, cluster }: Bench, lock: string): Promise<void> {
  const by: string = JSON.parse(await cluster.kubectl(['auth', 'whoami', '-o', 'json'])).status.userInfo.username;
  const token = (await scene.holder(lock))?.token;
  const request = JSON.stringify({ token, by, reason: 'measurement' });
  await annotate(scene, lock, { 'kilit.dev/break': request });
}

async function deleteLock({ scene }: Bench, lock: string): Promise<void> {
  await annotate(scene, lock, { 'kilit.dev/force-delete': 'true' });
  await scene.kube.must('DELETE', scene.lockPath(lock));
}

const annotate = (scene: Bench['scene'], lock: string, annotations: object): Promise<unknown> =>
  scene.kube.must('PATCH', scene.lockPath(lock), { body: { metadata: { annotations } } });

const CAUSES: readonly Cause[] = [
  {
    name: 'API server cut off',
    lose: ({ cluster }, { node, uid }) => cluster.node(node).cutPod(uid),
    heal: ({ cluster }, { node, uid }) => cluster.node(node).healPod(uid),
  },
  { name: 'other holder (grant broken)', lose: (bench, { lock }) => breakGrant(bench, lock) },
  { name: 'lock deleted by force', lose: (bench, { lock }) => deleteLock(bench, lock) },
];

export async function losses(bench: Bench): Promise<readonly Figure[]> {
  const figures: Figure[] = [];
  for (const [number, cause] of CAUSES.entries()) {
    for (const count of [1, 3]) {
      for (const deaf of [false, true]) {
        const values: number[] = [];
        for (let done = 0; done < bench.tries; done += AT_ONCE) {
          const size = Math.min(AT_ONCE, bench.tries - done);
          const locks = Array.from(
            { length: size },
            (_, i) => `loss-${number}-${count}-${deaf ? 'deaf' : 'good'}-${done + i}`,
          );
          const containers = ['app', 'second', 'third'].slice(0, count);
          values.push(
            ...(await Promise.all(locks.map((lock) => timeToDeath(bench, cause, { lock, containers, deaf })))),
          );
        }
        const what = `${count} container${count === 1 ? '' : 's'}${deaf ? ' that ignore SIGTERM' : ''}`;
        figures.push({ name: `${cause.name} → program dead, ${what} (lease ${LEASE_SECONDS} s)`, unit: 's', values });
      }
    }
  }
  return figures;
}

/** Until the last program container of the Pod has ended, in seconds. */
async function timeToDeath(bench: Bench, cause: Cause, { lock, containers, deaf }: Case): Promise<number> {
  const { scene, cluster, say } = bench;
  await scene.lock(lock, { leaseDurationSeconds: LEASE_SECONDS });
  const command = ['node', '-e', deaf ? DEAF : PROGRAM];
  const spec = {
    terminationGracePeriodSeconds: 30,
    containers: containers.map((name) => ({ name, image: TEST_IMAGE, imagePullPolicy: 'Never', command })),
  };
  const uid = uidOf(await scene.pod(measuredPod({ lock, name: lock, spec })));
  await startOf(bench, lock, lock);
  const node = (await scene.readPod(lock)).spec.nodeName ?? '';
  const programs = async (): Promise<readonly number[]> => {
    const pids = await cluster.node(node).pidsOfPod(uid);
    return containers.flatMap((name) => pids.get(name)?.[0] ?? []);
  };
  const before = await waitFor('all programs to run', async () => {
    const pids = await programs();
    return pids.length === containers.length && pids;
  });
  await sleep(2000 + Math.random() * 5000);
  const at = Date.now();
  await cause.lose(bench, { lock, uid, node });
  await waitFor('the programs to be dead', async () => (await programs()).every((pid) => !before.includes(pid)), {
    seconds: 90,
    everyMs: 50,
  });
  const seconds = (Date.now() - at) / 1000;
  say(`${lock}: ${seconds.toFixed(2)} s`);
  await cause.heal?.(bench, { uid, node });
  await scene.deletePod(lock, 1);
  return seconds;
}
