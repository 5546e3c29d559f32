/**
 * The operator is killed before and after each of its writes while a grant is broken, a lock is handed over, and a Pod is
 * waited for by `takeover: PodGone`: it all comes to the same end as without a crash. `crash.test.ts` has plain hand-overs.
 */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { kubectl, openTestKube } from '../support/cluster.ts';
import type { Kube } from '../support/kube.ts';
import { OperatorLab } from '../support/operator-process.ts';
import { Scene } from '../support/scene.ts';
import { waitFor } from '../support/wait.ts';

const LOCKS = ['broken', 'handed', 'gone'] as const;
type Lock = (typeof LOCKS)[number];

let kube: Kube;
let lab: OperatorLab;
let me: string;
beforeAll(async () => {
  kube = openTestKube();
  me = JSON.parse(kubectl('auth', 'whoami', '-o', 'json')).status.userInfo.username;
  lab = await OperatorLab.open(kube);
});
afterAll(async () => {
  await lab[Symbol.asyncDispose]();
  kube.close();
});

interface Outcome {
  readonly holder: string | undefined;
  readonly queue: readonly string[];
  readonly transitions: number;
  readonly tokenGrew: boolean;
  /** The next program has the token of the Lease, and so has its Pod's annotation. */
  readonly tokenIsShown: boolean;
  readonly requests: readonly string[];
  readonly broken: boolean;
  readonly handedOver: boolean;
  /** Pods with the finalizer. */
  readonly kept: readonly string[];
  /** Pods that look like the holder. */
  readonly marked: readonly string[];
}

/** Each lock has a holder, `…-a`, and a waiter, `…-b`; an operator that is not killed brings them there. */
async function begin(scene: Scene): Promise<ReadonlyMap<Lock, string>> {
  const operator = await lab.start('never');
  for (const lock of LOCKS) {
    await scene.lock(lock, { leaseDurationSeconds: 15, takeover: lock === 'gone' ? 'PodGone' : 'Lease' });
    await scene.pod({ lock, name: `${lock}-a` });
  }
  const tokens = new Map<Lock, string>();
  for (const lock of LOCKS) {
    tokens.set(lock, (await scene.started(`${lock}-a`)).env);
    await scene.pod({ lock, name: `${lock}-b` });
  }
  for (const lock of LOCKS) {
    await waitFor(`the waiter of ${lock}`, async () => {
      const { status } = await scene.readLock(lock);
      return status?.fencingToken === tokens.get(lock) && status?.queue?.[0]?.reason === 'Waiting';
    });
  }
  operator.kill();
  await operator.ended;
  return tokens;
}

async function ask(scene: Scene, tokens: ReadonlyMap<Lock, string>): Promise<void> {
  const request = (lock: Lock) => JSON.stringify({ token: tokens.get(lock), by: me, reason: 'crash' });
  const annotate = (lock: Lock, name: string) =>
    kube.must('PATCH', scene.lockPath(lock), { body: { metadata: { annotations: { [name]: request(lock) } } } });
  await annotate('broken', 'kilit.dev/break');
  await annotate('handed', 'kilit.dev/handover');
  await scene.deletePod('gone-a');
}

async function outcome(scene: Scene, lock: Lock, before: bigint): Promise<Outcome> {
  const { metadata, status } = await scene.readLock(lock);
  const pods = (await kube.must('GET', scene.podPath())).items as Awaited<ReturnType<Scene['readPod']>>[];
  const own = pods.filter((pod) => pod.metadata.labels?.['kilit.dev/lock'] === lock);
  const names = (of: typeof own) => of.map((pod) => pod.metadata.name).toSorted();
  const [started] = await scene.starts(`${lock}-b`);
  const holder = await scene.holder(lock);
  const shown = own.find((pod) => pod.metadata.name === holder?.pod)?.metadata.annotations?.['kilit.dev/fencing-token'];
  return {
    holder: status?.holder?.name,
    queue: (status?.queue ?? []).map(({ name, reason }) => `${name} ${reason}`),
    transitions: status?.transitions ?? 0,
    tokenGrew: BigInt(holder?.token ?? '0') > before,
    tokenIsShown: holder !== undefined && started?.env === holder.token && shown === holder.token,
    requests: Object.keys(metadata.annotations ?? {}),
    broken: status?.lastBreak?.token === String(before),
    handedOver: status?.lastHandover?.token === String(before),
    kept: names(own.filter((pod) => pod.metadata.finalizers?.includes('kilit.dev/holder'))),
    marked: names(own.filter((pod) => pod.metadata.labels?.['kilit.dev/leader'] !== undefined)),
  };
}

/** What everything comes to. */
const EXPECTED: Readonly<Record<Lock, Outcome>> = {
  broken: expected('broken', { transitions: 3, broken: true }),
  handed: expected('handed', { transitions: 2, handedOver: true }),
  gone: expected('gone', { transitions: 2, queue: [], kept: ['gone-b'] }),
};

function expected(lock: Lock, more: Partial<Outcome>): Outcome {
  return {
    holder: `${lock}-b`,
    queue: [`${lock}-a Waiting`],
    tokenGrew: true,
    tokenIsShown: true,
    requests: [],
    broken: false,
    handedOver: false,
    kept: [],
    marked: [`${lock}-b`],
    transitions: 0,
    ...more,
  };
}

it('killed before and after each of its writes, it carries out what was asked, once', async () => {
  await using scene = await Scene.open(kube, 'crash-requests');
  const tokens = await begin(scene);
  const done = new AbortController();
  const writes: string[] = [];
  let kills = 0;
  await ask(scene, tokens);
  const operating = (async () => {
    for (let turn = 0; !done.signal.aborted; turn += 1) {
      const operator = await lab.start(turn % 2 === 0 ? 'before' : 'after');
      const stop = () => operator.kill();
      done.signal.addEventListener('abort', stop, { once: true });
      expect(await operator.ended).toBe('SIGKILL');
      done.signal.removeEventListener('abort', stop);
      kills += 1;
      writes.push(...operator.wrote);
    }
  })();
  try {
    for (const lock of LOCKS) {
      await waitFor(
        `lock ${lock} to come to its end`,
        async () => {
          const found = await outcome(scene, lock, BigInt(tokens.get(lock) ?? '0'));
          if (JSON.stringify(found) !== JSON.stringify({ ...found, ...EXPECTED[lock] }))
            throw new Error(JSON.stringify(found));
          return true;
        },
        { seconds: 400, everyMs: 1000 },
      );
    }
  } finally {
    done.abort();
    await operating;
  }
  console.log(
    `FIGURE operator killed ${kills} times around ${writes.length} writes of a break, a hand-over and a wait for a Pod`,
  );
  const written = (verb: string, kind: string) =>
    writes.filter((write) => write.startsWith(verb) && write.includes(kind)).length;
  // Break, free and grant; ask to yield and grant; grant.
  expect(written('PUT', '/leases/')).toBeGreaterThanOrEqual(6);
  // Marks of three new holders, and the finalizers of two Pods.
  expect(written('PATCH', '/pods/')).toBeGreaterThanOrEqual(5);
  // Two requests are dropped.
  expect(written('PATCH', '/distributedlocks/')).toBeGreaterThanOrEqual(2);
}, 900_000);
