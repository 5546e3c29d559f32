/**
 * `kilit break`, `handover` and `base raise` on the real API server. The operator is scaled to zero: the test plays it,
 * so that what the command writes can be seen before anybody acts on it.
 */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parse } from 'yaml';
import { inProcess } from '../cli/support/in-process.ts';
import { OPERATOR_NAMESPACE } from '../support/install.ts';
import { kilit as asProcess, type KubeconfigParts, writeKubeconfig } from '../support/kilit.ts';
import { waitFor } from '../support/wait.ts';
import { aLease, leasePath, openLeaseWorld, readLease, toHolder, toSibling, write } from './policies/leases.ts';
import { readBase, until, type World, without } from './policies/world.ts';

const REASON = 'node n7 is frozen';

let world: World;
let admin: Readonly<Record<string, string>>;
let lockPath: string;

beforeAll(async () => {
  world = await openLeaseWorld();
  admin = { KUBECONFIG: world.kube.kubeconfig };
  const locks = `/apis/kilit.dev/v1alpha1/namespaces/${world.namespace}/distributedlocks`;
  lockPath = `${locks}/billing`;
  for (const name of ['billing', 'spare']) {
    const body = { apiVersion: 'kilit.dev/v1alpha1', kind: 'DistributedLock', metadata: { name } };
    await world.kube.must('POST', locks, { body });
  }
  await grantTo(toSibling);
  await grantTo(toHolder);
});
afterAll(() => world?.[Symbol.asyncDispose]());

const kilit = (words: readonly string[], env: Readonly<Record<string, string>>) =>
  inProcess(words, { env, time: 'real' });

/** What the operator writes after a grant; the policy compares a request's token with it. */
async function grantTo(change: typeof toHolder): Promise<void> {
  const { kube, who } = world;
  await write(world, who.operator, change(await readLease(world, 'kilit.billing'), world));
  const body = { status: { fencingToken: await token() } };
  await kube.must('PATCH', `${lockPath}/status`, { as: who.operator, body });
}

const at = (): readonly string[] => ['-n', world.namespace];
const annotations = async () => (await world.kube.must('GET', lockPath)).metadata?.annotations ?? {};
const token = async (): Promise<string> =>
  (await readLease(world, 'kilit.billing')).metadata.annotations['kilit.dev/fencing-token'] ?? '';

async function withdraw(kind: string): Promise<void> {
  await world.kube.must('PATCH', lockPath, { body: { metadata: { annotations: { [`kilit.dev/${kind}`]: null } } } });
}

describe.each(['break', 'handover'] as const)('kilit %s', (kind) => {
  test('writes token, name and reason onto the lock, once', async () => {
    const asked = await kilit([kind, 'billing', ...at(), '--reason', REASON, '--yes'], admin);
    expect(asked).toMatchObject({ code: 0 });
    expect(asked.stderr).toMatch(/is held by Pod holder with token \d+/);
    const request = JSON.parse((await annotations())[`kilit.dev/${kind}`] ?? '{}') as Record<string, string>;
    expect(request).toEqual({ token: await token(), by: expect.any(String), reason: REASON });
    expect(asked.stdout).toBe(`Asked for the ${kind} of lock billing, token ${request.token}, as ${request.by}.\n`);

    const second = await kilit([kind, 'billing', ...at(), '--reason', 'again', '--yes'], admin);
    expect(second).toMatchObject({ code: 1, stdout: '' });
    expect(second.stderr).toContain(
      `A ${kind} of token ${request.token} is asked for already, by ${request.by}: ${REASON}`,
    );

    const described = await kilit(['describe', 'billing', ...at()], admin);
    expect(described.stdout).toContain(`${kind} of token ${request.token} is asked for by ${request.by}: ${REASON}`);
    await withdraw(kind);
  });

  test('asks nothing of nobody: without a terminal it wants --yes, and changes nothing', async () => {
    const refused = await kilit([kind, 'billing', ...at(), '--reason', REASON], admin);
    expect(refused).toMatchObject({ code: 2, stdout: '' });
    expect(refused.stderr).toContain('there is no terminal to ask at; nothing was done. Give --yes.');
    expect(await annotations()).not.toHaveProperty([`kilit.dev/${kind}`]);
  });

  test('refuses a lock that nobody holds', async () => {
    const refused = await kilit([kind, 'spare', ...at(), '--reason', REASON, '--yes'], admin);
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain(`Nobody holds lock 'spare': there is no grant for a ${kind} to end.`);
  });

  test('names the right that a user of role edit lacks, and writes nothing', async () => {
    const { kube, namespace } = world;
    const account = 'person';
    await kube.ask('POST', `/api/v1/namespaces/${namespace}/serviceaccounts`, {
      body: { metadata: { name: account } },
    });
    await kube.ask('POST', `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`, {
      body: {
        metadata: { name: account },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'edit' },
        subjects: [{ kind: 'ServiceAccount', name: account, namespace }],
      },
    });
    // The built-in role's aggregate of the chart's may come a moment later.
    using person = writeKubeconfig({
      ...clusterOf(kube.kubeconfig),
      token: kube.kubectl(['create', 'token', account, '-n', namespace]).trim(),
      namespace,
    });
    const refused = await waitFor('the rights of role edit', async () => {
      const ran = await kilit([kind, 'billing', '--reason', REASON, '--yes'], { KUBECONFIG: person.path });
      return ran.stderr.includes(' may not get ') ? undefined : ran;
    });
    expect(refused).toMatchObject({ code: 1, stdout: '' });
    expect(refused.stderr).toContain(
      `[Forbidden] 'system:serviceaccount:${namespace}:${account}' may not break distributedlocks.kilit.dev 'billing' in namespace ${namespace}.`,
    );
    expect(await annotations()).not.toHaveProperty([`kilit.dev/${kind}`]);
  });

  test('--wait ends when the token has moved, and tells the steps', async () => {
    const before = await token();
    const running = asProcess([kind, 'billing', ...at(), '--reason', REASON, '--yes', '--wait'], admin);
    await waitFor('the request', async () => (await annotations())[`kilit.dev/${kind}`]);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    await grantTo(toSibling);
    await withdraw(kind);
    const done = await running;
    expect(done).toMatchObject({ code: 0 });
    expect(done.stderr).toMatch(/asked; the operator has not acted yet\n/);
    expect(done.stderr).toMatch(new RegExp(`done: Pod sibling holds the lock with token ${await token()}\n$`));
    expect(BigInt(await token())).toBeGreaterThan(BigInt(before));
    await grantTo(toHolder);
  });

  test('--wait gives up after --timeout when no operator acts', async () => {
    const late = await kilit(
      [kind, 'billing', ...at(), '--reason', REASON, '--yes', '--wait', '--timeout', '2'],
      admin,
    );
    expect(late.code).toBe(1);
    expect(late.stderr).toMatch(/Not done after 2s: asked; the operator has not acted yet\. The request stands\./);
    await withdraw(kind);
  });
});

describe('kilit base raise --above-all', () => {
  test('raises the annotation above every token, and show finds nothing behind', async () => {
    const shown = JSON.parse((await kilit(['base', 'show', '-o', 'json'], admin)).stdout) as Record<string, string>;
    expect(shown).toMatchObject({ namespace: OPERATOR_NAMESPACE, base: String(world.base), behind: false });
    expect(BigInt(shown.revision ?? 0)).toBeGreaterThan(0n);

    const mark = BigInt(shown.nextToken ?? 0) + 5_000_000_000n;
    const behind = await kilit(['base', 'show', '--mark', `shop/billing=${mark}`], admin);
    expect(behind).toMatchObject({ code: 1 });
    expect(behind.stdout).toContain('The revision fell behind. Raise the base: kilit base raise ');

    const low = await kilit(
      ['base', 'raise', String(world.base + 1n), '--mark', `shop/billing=${mark}`, '--yes'],
      admin,
    );
    expect(low).toMatchObject({ code: 1, stdout: '' });
    expect(low.stderr).toContain(`not above ${mark} (the mark of shop/billing)`);
    expect(await readBase(world.kube)).toBe(world.base);

    try {
      const raised = await kilit(['base', 'raise', '--above-all', '--mark', `shop/billing=${mark}`, '--yes'], admin);
      expect(raised).toMatchObject({ code: 0 });
      const to = await readBase(world.kube);
      expect(raised.stdout).toBe(`The token base is ${to}.\n`);
      expect(to).toBeGreaterThan(mark);
      expect(to % 1_000_000_000n).toBe(0n);
      expect(await kilit(['base', 'show', '--mark', `shop/billing=${mark}`], admin)).toMatchObject({ code: 0 });
      const lower = await kilit(['base', 'raise', String(to - 1n), '--yes'], admin);
      expect(lower).toMatchObject({ code: 1, stdout: '' });
      expect(lower.stderr).toContain(`the token base only grows: it is ${to}, and ${to - 1n} is less`);
    } finally {
      await lowerBase();
    }
  });
});

test('kilit doctor sees a Lease without a lock, and that no operator runs', async () => {
  await world.kube.must('POST', leasePath(world), { as: world.who.operator, body: aLease('stray') });
  const { code, stdout } = await kilit(['doctor', ...at(), '-o', 'json'], admin);
  expect(code).toBe(1);
  const { findings } = JSON.parse(stdout) as { findings: { check: string; result: string; says: string }[] };
  expect(findings.filter(({ check }) => check === 'stray-leases')).toEqual([
    expect.objectContaining({ result: 'warn', says: `Leases without a lock: ${world.namespace}/kilit.stray.` }),
  ]);
  expect(findings.find(({ check }) => check === 'operator')).toMatchObject({ result: 'fail' });
  expect(findings.find(({ check }) => check === 'operator-leader')).toMatchObject({ result: 'fail' });
});

/** The base never falls, and other tests start from what was there: so without its guard for a moment. */
async function lowerBase(): Promise<void> {
  const { kube } = world;
  await using _ = await without(
    kube,
    '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/kilit-token-base',
  );
  const base = world.base === 0n ? null : String(world.base);
  const body = { metadata: { annotations: { 'kilit.dev/token-base': base } } };
  await until(
    'the base to be free',
    async () => (await kube.ask('PATCH', `/api/v1/namespaces/${OPERATOR_NAMESPACE}`, { body })).status === 200,
  );
}

/** Server and CA of a kubeconfig. */
function clusterOf(path: string): Pick<KubeconfigParts, 'server' | 'ca'> {
  const { clusters } = parse(readFileSync(path, 'utf8')) as {
    readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[];
  };
  const cluster = clusters[0]?.cluster ?? {};
  const data = cluster['certificate-authority-data'];
  const ca =
    data === undefined
      ? readFileSync(cluster['certificate-authority'] ?? '', 'utf8')
      : Buffer.from(data, 'base64').toString();
  return { server: cluster.server ?? '', ca };
}
