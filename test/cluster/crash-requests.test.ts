/**
 * The operator is killed before and after each of its writes while a grant is broken, a lock is handed over, and a Pod is
 * waited for by `takeover: PodGone`: it all comes to the same end as without a crash. `crash.test.ts` has plain hand-overs.
 */
import { isDeepStrictEqual } from 'node:util';
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

/** An administrator asks, or the holder is deleted. */
async function ask(scene: Scene, lock: Lock, token: string): Promise<void> {
  if (lock === 'gone') return scene.deletePod('gone-a');
  const request = JSON.stringify({ token, by: me, reason: 'crash' });
  const annotations = { [lock === 'broken' ? 'kilit.dev/break' : 'kilit.dev/handover']: request };
  await kube.must('PATCH', scene.lockPath(lock), { body: { metadata: { annotations } } });
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

/** Writes of each flow that must be among those that were killed around, at least: by verb and a part of the path. */
const WRITES: Readonly<Record<Lock, readonly (readonly [count: number, verb: string, path: string])[]>> = {
  // Break, and grant to the waiter at once; marks of both Pods; the request.
  broken: [
    [2, 'PUT', '/leases/'],
    [2, 'PATCH', '/pods/'],
    [1, 'PATCH', '/distributedlocks/'],
  ],
  // Ask to yield, grant.
  handed: [
    [2, 'PUT', '/leases/'],
    [2, 'PATCH', '/pods/'],
    [1, 'PATCH', '/distributedlocks/'],
  ],
  // The finalizer of the one, then the grant, then the finalizer and the marks of the other.
  gone: [
    [1, 'PUT', '/leases/'],
    [3, 'PATCH', '/pods/'],
  ],
};

it('killed before and after each of its writes, it carries out what was asked, once', async () => {
  await using scene = await Scene.open(kube, 'crash-requests');
  const tokens = await begin(scene);
  // One after the other: passes of several locks run at the same time, and only one write would be killed around.
  for (const lock of LOCKS) {
    const token = tokens.get(lock) ?? '0';
    const { kills, wrote } = await whileCrashing(async () => {
      await ask(scene, lock, token);
      await waitFor(
        `lock ${lock} to come to its end`,
        async () => {
          const found = await outcome(scene, lock, BigInt(token));
          if (!isDeepStrictEqual(found, EXPECTED[lock])) throw new Error(JSON.stringify(found));
          return true;
        },
        { seconds: 300, everyMs: 500 },
      );
    });
    console.log(`FIGURE ${lock}: operator killed ${kills} times around ${wrote.length} writes`);
    for (const [count, verb, path] of WRITES[lock]) {
      const those = wrote.filter((write) => write.startsWith(verb) && write.includes(path));
      expect(those.length, `${verb} ${path} of ${lock} among ${wrote.join(', ')}`).toBeGreaterThanOrEqual(count);
    }
  }
}, 900_000);

/** Runs operators in turn that kill themselves around their first write, until the work is done. */
async function whileCrashing(
  work: () => Promise<void>,
): Promise<{ readonly kills: number; readonly wrote: readonly string[] }> {
  const done = new AbortController();
  const wrote: string[] = [];
  let kills = 0;
  const operating = (async () => {
    for (let turn = 0; !done.signal.aborted; turn += 1) {
      const operator = await lab.start(turn % 2 === 0 ? 'before' : 'after');
      const stop = () => operator.kill();
      done.signal.addEventListener('abort', stop, { once: true });
      expect(await operator.ended).toBe('SIGKILL');
      done.signal.removeEventListener('abort', stop);
      kills += 1;
      wrote.push(...operator.wrote);
    }
  })();
  try {
    await work();
  } finally {
    done.abort();
    await operating;
  }
  return { kills, wrote };
}
