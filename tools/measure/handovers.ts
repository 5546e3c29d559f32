/** Times from the end of one holder to the start of the next. */
import { setTimeout as sleep } from 'node:timers/promises';
import { waitFor } from '../../test/support/wait.ts';
import type { ClusterNode } from '../cluster/index.ts';
import { type Bench, displayedAt, measuredPod, startOf, uidOf, waits } from './bench.ts';
import type { Figure } from './figures.ts';

const ONCE = { restartPolicy: 'Never', terminationGracePeriodSeconds: 10 };

/** Runs `end` on a holder while a ready waiter waits, and returns the starts of the waiters after the ends. */
async function relay(
  bench: Bench,
  lock: string,
  options: { readonly tries: number; readonly spec?: object; readonly end: (holder: string) => Promise<number> },
): Promise<{ readonly seconds: number[]; readonly grants: { tokenFile: number; display: number; started: number }[] }> {
  const { scene, say } = bench;
  await scene.lock(lock, {});
  const spec = { ...ONCE, ...options.spec };
  const seconds: number[] = [];
  const grants: { tokenFile: number; display: number; started: number }[] = [];
  let holder = `${lock}-0`;
  await scene.pod(measuredPod({ lock, name: holder, spec }));
  await startOf(bench, lock, holder);
  for (let round = 1; round <= options.tries; round += 1) {
    const next = `${lock}-${round}`;
    await scene.pod(measuredPod({ lock, name: next, spec }));
    await waits(bench, lock, next);
    await sleep(1500);
    const endedAt = await options.end(holder);
    const start = await startOf(bench, lock, next);
    seconds.push((start.startedAt - endedAt) / 1000);
    grants.push({
      tokenFile: (start.tokenFileAt - start.grantedAt) / 1000,
      display: ((await displayedAt(bench, next)) - start.grantedAt) / 1000,
      started: (start.startedAt - start.grantedAt) / 1000,
    });
    say(`${lock} ${round}/${options.tries}: ${seconds.at(-1)?.toFixed(2)} s`);
    holder = next;
  }
  await scene.deletePod(holder);
  return { seconds, grants };
}

export async function deletion(bench: Bench): Promise<readonly Figure[]> {
  const { seconds, grants } = await relay(bench, 'delete', {
    tries: bench.tries,
    async end(holder) {
      const at = Date.now();
      await bench.scene.deletePod(holder);
      return at;
    },
  });
  return [
    { name: 'grant → token in `/run/kilit/token`', unit: 's', values: grants.map((g) => g.tokenFile), aim: 0.3 },
    { name: 'grant → token in `/etc/kilit/token` (display)', unit: 's', values: grants.map((g) => g.display) },
    { name: 'grant → program started', unit: 's', values: grants.map((g) => g.started), aim: 1 },
    { name: '`kubectl delete pod` of the holder → next program started', unit: 's', values: seconds, aim: 2 },
  ];
}

export async function programKilled(bench: Bench): Promise<readonly Figure[]> {
  const { seconds } = await relay(bench, 'killed', {
    tries: bench.tries,
    async end(holder) {
      const pod = await bench.scene.readPod(holder);
      const at = Date.now();
      await nodeOf(bench, pod.spec.nodeName).killContainer(uidOf(pod), 'app');
      return at;
    },
  });
  return [
    { name: 'program SIGKILLed, `restartPolicy: Never` → next program started', unit: 's', values: seconds, aim: 2 },
  ];
}

/** Cuts the holder's Pod off from the API server, and waits for its program to be gone. */
export async function cutOff(bench: Bench): Promise<readonly Figure[]> {
  const { scene, say } = bench;
  const lease = 15;
  const values: number[] = [];
  for (let round = 1; round <= bench.tries; round += 1) {
    const lock = `cut-${round}`;
    await scene.lock(lock, { leaseDurationSeconds: lease });
    const pod = await scene.pod(measuredPod({ lock, name: lock, spec: ONCE }));
    await startOf(bench, lock, lock);
    await sleep(Math.random() * 5000);
    const node = nodeOf(bench, (await scene.readPod(lock)).spec.nodeName);
    const before = (await node.pidsOfPod(uidOf(pod))).get('app')?.[0];
    const cutAt = Date.now();
    await node.cutPod(uidOf(pod));
    await waitFor('the program to be dead', async () => (await node.pidsOfPod(uidOf(pod))).get('app')?.[0] !== before, {
      seconds: 60,
      everyMs: 50,
    });
    values.push((Date.now() - cutAt) / 1000);
    say(`${lock}/${bench.tries}: ${values.at(-1)?.toFixed(2)} s`);
    await node.healPod(uidOf(pod));
    await scene.deletePod(lock);
  }
  return [{ name: 'API server cut off → program dead (lease 15 s)', unit: 's', values, aim: 0.9 * lease + 3 }];
}

/** The holder's node loses its kubelet, and the holder its sidecar and its program: nobody can tell that it is dead. */
export async function silentDeath(bench: Bench, tries: number): Promise<readonly Figure[]> {
  const [first, second] = bench.cluster.nodes;
  if (first === undefined || second === undefined) throw new Error('This measurement needs two nodes');
  const { scene, say } = bench;
  const spec = { leaseDurationSeconds: 15, takeoverDelaySeconds: 5 };
  const values: number[] = [];
  for (let round = 1; round <= tries; round += 1) {
    const lock = `silent-${round}`;
    await scene.lock(lock, spec);
    const pod = await scene.pod(measuredPod({ lock, name: `${lock}-a`, spec: { ...ONCE, nodeName: second.name } }));
    await startOf(bench, lock, `${lock}-a`);
    await scene.pod(measuredPod({ lock, name: `${lock}-b`, spec: { ...ONCE, nodeName: first.name } }));
    await waits(bench, lock, `${lock}-b`);
    await second.stopKubelet();
    try {
      const at = Date.now();
      for (const container of ['kilit', 'app']) await second.killContainer(uidOf(pod), container);
      const start = await startOf(bench, lock, `${lock}-b`);
      values.push((start.startedAt - at) / 1000);
      say(`${lock}/${tries}: ${values.at(-1)?.toFixed(2)} s`);
    } finally {
      await second.startKubelet();
    }
    for (const name of ['a', 'b']) await scene.deletePod(`${lock}-${name}`, name === 'a' ? 0 : undefined);
    await waitFor('the node to be Ready again', async () => {
      const node = await scene.kube.must('GET', `/api/v1/nodes/${second.name}`);
      const { conditions } = node.status as { conditions: { type: string; status: string }[] };
      return conditions.some((c) => c.type === 'Ready' && c.status === 'True');
    });
  }
  const aim = spec.leaseDurationSeconds + spec.takeoverDelaySeconds + 2;
  return [
    {
      name: "holder's kubelet, sidecar and program gone → next program started (lease 15 s, delay 5 s)",
      unit: 's',
      values,
      aim,
    },
  ];
}

function nodeOf({ cluster }: Bench, name: string | undefined): ClusterNode {
  return cluster.node(name ?? '');
}
