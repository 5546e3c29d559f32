import { afterAll, beforeAll, expect, it } from 'vitest';
import { OPERATOR_NAMESPACE, openTestKube } from '../support/cluster.ts';
import type { Kube } from '../support/kube.ts';
import { condition, Scene } from '../support/scene.ts';
import { waitFor } from '../support/wait.ts';

const LOCK = 'ledger';
const BASE = `/api/v1/namespaces/${OPERATOR_NAMESPACE}`;
const GARBAGE_COLLECTOR = {
  kind: 'user',
  name: 'system:serviceaccount:kube-system:generic-garbage-collector',
  groups: ['system:masters'],
} as const;

let kube: Kube;
beforeAll(() => {
  kube = openTestKube();
});
afterAll(() => kube.close());

/** What is done to the lock between two hand-overs. */
const disturbances: Readonly<Record<string, (scene: Scene) => Promise<void>>> = {
  nothing: async () => {},
  'lock deleted and created again': async (scene) => {
    await kube.must('DELETE', scene.lockPath(LOCK));
    await waitFor('the lock to be gone', async () => (await kube.ask('GET', scene.lockPath(LOCK))).status === 404);
    await scene.lock(LOCK);
  },
  'lease deleted': async (scene) => {
    const before = await scene.readLease(LOCK);
    await kube.must('DELETE', scene.leasePath(LOCK), { as: GARBAGE_COLLECTOR });
    await waitFor('a new Lease', async () => (await scene.readLease(LOCK)).metadata.uid !== before.metadata.uid);
  },
  'base raised': async () => {
    const base = BigInt((await kube.must('GET', BASE)).metadata?.annotations?.['kilit.dev/token-base'] ?? '0');
    await kube.must('PATCH', BASE, {
      body: { metadata: { annotations: { 'kilit.dev/token-base': (base + 1_000_000n).toString() } } },
    });
  },
  'namespace deleted and created again': async (scene) => {
    const path = `/api/v1/namespaces/${scene.namespace}`;
    await kube.must('DELETE', path);
    await waitFor('the namespace to be gone', async () => (await kube.ask('GET', path)).status === 404, {
      seconds: 120,
    });
    await kube.must('POST', '/api/v1/namespaces', { body: { metadata: { name: scene.namespace } } });
    await waitFor(
      'its service account',
      async () => (await kube.ask('GET', `${path}/serviceaccounts/default`)).status === 200,
    );
    await scene.lock(LOCK);
  },
};
const ORDER = [
  'nothing',
  'lock deleted and created again',
  'nothing',
  'base raised',
  'lease deleted',
  'nothing',
  'namespace deleted and created again',
  'nothing',
  'lock deleted and created again',
  'base raised',
];

it('tokens strictly grow over 20 hand-overs, whatever is deleted, created again or raised in between', async () => {
  await using scene = await Scene.open(kube, 'tokens');
  await scene.lock(LOCK);
  const tokens: { readonly token: bigint; readonly after: string }[] = [];
  let after = 'nothing';
  for (let round = 0; round < 20; round += 1) {
    const name = `run-${round}`;
    await scene.pod({ lock: LOCK, name, spec: { restartPolicy: 'Never' }, program: ONCE });
    const { env } = await scene.started(name, 120);
    tokens.push({ token: BigInt(env), after });
    await waitFor('the lock to be free', async () => {
      const lock = await scene.readLock(LOCK);
      return condition(lock, 'Held')?.status === 'False' && lock.status?.fencingToken === env;
    });
    after = ORDER[round % ORDER.length] ?? 'nothing';
    await disturbances[after]?.(scene);
  }
  console.log(`FIGURE tokens ${tokens.map(({ token, after: done }) => `${token} (${done})`).join(', ')}`);
  for (const [i, { token, after: done }] of tokens.entries()) {
    expect(token, `token ${i}, after: ${done}`).toBeGreaterThan(tokens[i - 1]?.token ?? 0n);
  }
}, 900_000);

const ONCE = 'console.log(JSON.stringify({ started: { env: process.env.FENCING_TOKEN, at: Date.now() } }))';
