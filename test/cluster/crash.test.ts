import { afterAll, beforeAll, expect, it } from 'vitest';
import { podView } from '../../src/core/pod.ts';
import { openTestKube } from '../support/cluster.ts';
import type { Kube } from '../support/kube.ts';
import { OperatorLab } from '../support/operator-process.ts';
import { Scene } from '../support/scene.ts';
import { waitFor } from '../support/wait.ts';

/** Hand-overs of one run: one Pod after the other gets the lock, and ends by itself. */
const PODS = Array.from({ length: 20 }, (_, index) => `p${String(index).padStart(2, '0')}`);
const LOCK = 'relay';
const ONCE = 'console.log(JSON.stringify({ started: { env: process.env.FENCING_TOKEN, at: Date.now() } }))';

let kube: Kube;
let lab: OperatorLab;
beforeAll(async () => {
  kube = openTestKube();
  lab = await OperatorLab.open(kube);
});
afterAll(async () => {
  await lab[Symbol.asyncDispose]();
  kube.close();
});

interface Outcome {
  /** The Pods in the order of the tokens with which their programs ran. */
  readonly order: readonly string[];
  readonly tokens: readonly bigint[];
  readonly transitions: number;
  readonly waiters: number;
  readonly held: string | undefined;
  readonly token: string | undefined;
  readonly marks: number;
}

/** Lets the Pods hold the lock one after the other while `operate` keeps an operator running. */
async function relay(scene: Scene, operate: (signal: AbortSignal) => Promise<void>): Promise<Outcome> {
  await kube.must('POST', scene.lockPath(), {
    body: { apiVersion: 'kilit.dev/v1alpha1', kind: 'DistributedLock', metadata: { name: LOCK } },
  });
  for (const name of PODS) await scene.pod({ lock: LOCK, name, program: ONCE, spec: { restartPolicy: 'Never' } });

  // Everybody is ready before the first grant, so that nobody is passed over and the order is the order of creation.
  await waitFor(
    'all sidecars to run',
    async () => {
      const pods = await Promise.all(PODS.map((name) => scene.readPod(name)));
      return pods.every((pod) => podView(pod, 0, undefined).sidecarRunning);
    },
    { seconds: 300, everyMs: 1000 },
  );
  const done = new AbortController();
  const operating = operate(done.signal);
  await waitFor(
    'all Pods to have run and the lock to be free',
    async () => {
      const lock = await scene.readLock(LOCK);
      return lock.status?.transitions === PODS.length && lock.status.holder === undefined && lock.status.waiters === 0;
    },
    { seconds: 900, everyMs: 500 },
  );
  // What is still to be written after the last hand-over, such as the marks of the last holder.
  await waitFor('the last marks to go', async () => (await markedPods(scene)) === 0, { seconds: 120 });
  done.abort();
  await operating;

  const runs = await Promise.all(
    PODS.map(async (name) => {
      const starts = await scene.starts(name);
      expect(starts, `starts of ${name}`).toHaveLength(1);
      return { name, token: BigInt(starts[0]?.env ?? '0') };
    }),
  );
  runs.sort((a, b) => (a.token < b.token ? -1 : 1));
  const { status } = await scene.readLock(LOCK);
  return {
    order: runs.map((run) => run.name),
    tokens: runs.map((run) => run.token),
    transitions: status?.transitions ?? 0,
    waiters: status?.waiters ?? -1,
    held: status?.holder?.name,
    token: status?.fencingToken,
    marks: await markedPods(scene),
  };
}

async function markedPods(scene: Scene): Promise<number> {
  const pods = await Promise.all(PODS.map((name) => scene.readPod(name)));
  return pods.filter((pod) => pod.metadata.annotations?.['kilit.dev/fencing-token'] !== undefined).length;
}

const strictlyGrow = (tokens: readonly bigint[]) =>
  tokens.every((token, i) => i === 0 || token > (tokens[i - 1] ?? 0n));

it('killed before and after each of its writes, it gives the same Pods the lock in the same order, once each', async () => {
  const scenes = { calm: await Scene.open(kube, 'calm'), crashed: await Scene.open(kube, 'crashed') };
  await using calmScene = scenes.calm;
  await using crashedScene = scenes.crashed;

  const undisturbed = await relay(calmScene, async (signal) => {
    const operator = await lab.start('never');
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    operator.kill();
    await operator.ended;
  });

  const writes: string[] = [];
  let kills = 0;
  const crashed = await relay(crashedScene, async (signal) => {
    for (let turn = 0; !signal.aborted; turn += 1) {
      const operator = await lab.start(turn % 2 === 0 ? 'before' : 'after');
      const stop = () => operator.kill();
      signal.addEventListener('abort', stop, { once: true });
      const end = await operator.ended;
      signal.removeEventListener('abort', stop);
      expect(end).toBe('SIGKILL');
      kills += 1;
      writes.push(...operator.wrote);
    }
  });

  console.log(`FIGURE operator killed ${kills} times around ${writes.length} writes in ${PODS.length} hand-overs`);
  expect(undisturbed.order).toEqual(PODS);
  expect(strictlyGrow(undisturbed.tokens)).toBe(true);
  expect(strictlyGrow(crashed.tokens)).toBe(true);
  // Numbers differ, since every write of the cluster counts; what they say is the same.
  expect(BigInt(crashed.token ?? '0')).toBe(crashed.tokens.at(-1));
  expect({ ...crashed, tokens: [], token: '' }).toEqual({ ...undisturbed, tokens: [], token: '' });
  // Every grant and every mark was among the writes that were killed around. Of the status only what it came to in the
  // end: each operator made one write at the most, and the next one found the state ahead of it.
  const written = (kind: string) => writes.filter((write) => write.includes(kind)).length;
  expect(written('/leases/')).toBeGreaterThanOrEqual(PODS.length);
  expect(written('/pods/')).toBeGreaterThanOrEqual(PODS.length);
  expect(written('/status')).toBeGreaterThanOrEqual(1);
}, 1_500_000);
