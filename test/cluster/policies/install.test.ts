/** Install, upgrade, uninstall and what lies between them, on the real API server. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { helm } from '../../support/cluster.ts';
import { installArgs, OPERATOR_NAMESPACE, RELEASE } from '../../support/install.ts';
import type { KubeObject } from '../../support/kube.ts';
import { type Attempt, outcome } from './attempts.ts';
import {
  aLease,
  granted,
  leasePath,
  microTime,
  readLease,
  renewed,
  replacing,
  toHolder,
  toSibling,
  write,
} from './leases.ts';
import { create } from './pods.ts';
import { aPod, openWorld, operatorIdentity, podPath, readBase, until, type World, without } from './world.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';

interface Policy extends KubeObject {
  readonly status?: { readonly typeChecking?: { readonly expressionWarnings?: unknown } };
}

let world: World;
beforeAll(async () => {
  world = await openWorld('install');
  await world.kube.must('POST', leasePath(world), { as: world.who.operator, body: aLease('billing') });
});
afterAll(() => world?.[Symbol.asyncDispose]());

describe('the policies', () => {
  test('pass the type check of the API server', async () => {
    const ours = async () => {
      const { items } = await world.kube.must('GET', `${ADMISSION}/validatingadmissionpolicies`);
      return (items as Policy[]).filter(({ metadata }) => metadata?.name?.startsWith('kilit-'));
    };
    await until('the type checks', async () =>
      (await ours()).every(({ status }) => status?.typeChecking !== undefined),
    );
    const warnings = (await ours()).map(({ metadata, status }) => [metadata?.name, status?.typeChecking]);
    expect(warnings).toHaveLength(12);
    expect(warnings).toEqual(warnings.map(([name]) => [name, {}]));
  });

  test('let a Pod go on that was labelled before they were installed', async () => {
    const { kube, namespace, who } = world;
    const bindings = `${ADMISSION}/validatingadmissionpolicybindings`;
    const name = 'labelled-before';
    const pod = aPod({
      metadata: { name, labels: { 'kilit.dev/lock': 'billing' }, finalizers: ['example.com/wait'] },
    });
    {
      await using _ = await without(
        kube,
        `${ADMISSION}/mutatingadmissionpolicybindings/kilit-inject`,
        `${bindings}/kilit-pod`,
        `${bindings}/kilit-pod-gate`,
      );
      await until('a Pod without injection', async () => {
        const answer = await kube.ask('POST', `${podPath(namespace)}?dryRun=All`, { body: pod });
        return answer.status === 201 && answer.body.spec?.initContainers === undefined;
      });
      await kube.must('POST', podPath(namespace), { body: pod });
    }
    await until('the injection', isInjecting);
    await until('the Pod policy', async () => {
      const lost = { metadata: { labels: { 'kilit.dev/lock': null } } };
      return (await kube.ask('PATCH', `${podPath(namespace, name)}?dryRun=All`, { body: lost })).status === 422;
    });
    const status = {
      phase: 'Running',
      containerStatuses: [{ name: 'main', ready: true, restartCount: 0, image: 'a', imageID: 'b' }],
    };
    await kube.must('PATCH', podPath(namespace, name) + '/status', { body: { status } });
    await kube.must('PATCH', podPath(namespace, name), {
      as: who.editor,
      body: { metadata: { annotations: { note: 'x' } } },
    });
    await kube.must('PATCH', podPath(namespace, name), {
      body: { spec: { containers: [{ name: 'main', image: 'example/main:2' }] } },
      patch: 'strategic',
    });
    await kube.must('DELETE', podPath(namespace, name));
    await kube.must('PATCH', podPath(namespace, name), { body: { metadata: { finalizers: null } } });
  });

  test('without its parameter nothing is granted, and every other Lease of the cluster goes on', async () => {
    const { kube, namespace, who } = world;
    const other = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
    await kube.must('POST', other, { body: { metadata: { name: 'somebody-elses' }, spec: { holderIdentity: 'a' } } });
    const binding = `${ADMISSION}/validatingadmissionpolicybindings/kilit-lease`;
    const nowhere = { name: 'not-there', parameterNotFoundAction: 'Deny' };
    await kube.must('PATCH', binding, { body: { spec: { paramRef: nowhere } } });
    try {
      await until('the grant to be refused', async () => (await outcome(world, grant)) !== 'allowed');
      expect(await outcome(world, grant)).toMatch(/ValidatingAdmissionPolicy 'kilit-lease' .* no params found/);
      const renewal = { spec: { renewTime: microTime(new Date()) } };
      expect((await kube.ask('PATCH', `${other}/somebody-elses`, { body: renewal })).status).toBe(200);
      const lease = leasePath(world, 'kilit.billing');
      expect((await kube.ask('DELETE', `${lease}?dryRun=All`, { as: who.garbageCollector })).status).toBe(200);
    } finally {
      helm(...installArgs({ replicas: 0 }));
    }
    await until('the grant to be allowed', async () => (await outcome(world, grant)) === 'allowed');
  });
});

describe('the chart', () => {
  test('tells after the install what a new user trips over', () => {
    const notes = helm('get', 'notes', RELEASE, '--namespace', OPERATOR_NAMESPACE);
    for (const told of [
      'the image localhost/kilit:dev',
      'strategy Recreate',
      'Pods created before this install are not gated',
      `kubectl rollout status deployment/${RELEASE} -n ${OPERATOR_NAMESPACE}`,
      `helm test ${RELEASE} -n ${OPERATOR_NAMESPACE}`,
    ]) {
      expect(notes).toContain(told);
    }
  });

  test('an upgrade changes nothing of what is held', async () => {
    await write(
      world,
      world.who.operator,
      granted(await readLease(world, 'kilit.billing'), world.holder, await readBase(world.kube)),
    );
    const before = await readLease(world, 'kilit.billing');
    helm(...installArgs({ replicas: 0 }));
    expect(await readLease(world, 'kilit.billing')).toEqual(before);
    const send = replacing('kilit.billing', renewed);
    expect(await outcome(world, { name: 'renew', as: 'holder', send })).toBe('allowed');
  });

  test('an uninstall keeps locks and Leases; a later install takes them over, with a base raised meanwhile', async () => {
    const { kube, namespace, who } = world;
    const locks = `/apis/kilit.dev/v1alpha1/namespaces/${namespace}/distributedlocks`;
    await kube.must('POST', locks, {
      body: { apiVersion: 'kilit.dev/v1alpha1', kind: 'DistributedLock', metadata: { name: 'billing' } },
    });
    await write(world, who.operator, toHolder(await readLease(world, 'kilit.billing'), world));

    helm('uninstall', RELEASE, '--namespace', OPERATOR_NAMESPACE, '--wait');
    await setBase(world.base + 5n);
    expect((await kube.ask('GET', `${locks}/billing`)).status).toBe(200);
    // The holder goes on renewing: the operator made its Role, not the chart.
    await write(world, who.holder, renewed(await readLease(world, 'kilit.billing')));

    helm(...installArgs({ replicas: 0 }));
    const steal = { name: 'steal', as: 'editor', send: replacing('kilit.billing', renewed) } as const;
    await until('the policies', async () => (await outcome(world, steal)) !== 'allowed');
    expect(await outcome(world, steal)).toMatch(/is held by "holder_/);
    await until('the injection', isInjecting);
    // kubernetes/kubernetes#130887: with a ConfigMap as parameter the base of before the uninstall would go on.
    const after = { ...world, who: { ...who, operator: await operatorIdentity(kube) } };
    expect(await outcome(after, grant)).toMatch(/must be \d+ for this grant/);
    const based = replacing('kilit.billing', (lease) => granted(lease, world.sibling, world.base + 5n));
    expect(await outcome(after, { name: 'grant', as: 'operator', send: based })).toBe('allowed');

    await using _ = await without(kube, `${ADMISSION}/validatingadmissionpolicybindings/kilit-token-base`);
    await until('the base to be free', async () => (await setBase(world.base)) === 200);
  });
});

const grant: Attempt = { name: 'grant', as: 'operator', send: replacing('kilit.billing', toSibling) };

/** A policy that refuses is often enforced before the one that injects: until then Pods are refused. */
async function isInjecting(): Promise<boolean> {
  const { status, body } = await create(world, world.who.admin, aPod());
  return status === 201 && body.spec?.initContainers !== undefined;
}

async function setBase(base: bigint): Promise<number> {
  const annotations = { 'kilit.dev/token-base': base === 0n ? null : String(base) };
  const path = `/api/v1/namespaces/${OPERATOR_NAMESPACE}`;
  return (await world.kube.ask('PATCH', path, { body: { metadata: { annotations } } })).status;
}
