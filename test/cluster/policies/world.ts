/**
 * A namespace with two Pods of one ServiceAccount, the people and programs around them, and the operator's identity.
 *
 * The Pods are never scheduled: policies look at objects, not at processes. The real operator is scaled to zero
 * meanwhile, so that the test alone plays its part.
 */

import { helm, openTestKube } from '../../support/cluster.ts';
import { installArgs, OPERATOR_NAMESPACE, RELEASE } from '../../support/install.ts';
import type { Identity, Kube, KubeObject } from '../../support/kube.ts';

export interface World extends AsyncDisposable {
  readonly kube: Kube;
  readonly namespace: string;
  readonly who: Readonly<Record<Who, Identity>>;
  readonly holder: TestPod;
  readonly sibling: TestPod;
  /** The token base at the beginning. */
  readonly base: bigint;
}

export interface TestPod {
  readonly name: string;
  readonly uid: string;
}

/** Who asks. `impostor` has the operator's user name by impersonation, but no Pod-bound token. */
export type Who = (typeof WHO)[number];
const WHO = [
  'admin',
  'editor',
  'holder',
  'sibling',
  'unboundPodUser',
  'operator',
  'impostor',
  'garbageCollector',
  'namespaceController',
  'node',
] as const;

const OPERATOR_USER = `system:serviceaccount:${OPERATOR_NAMESPACE}:${RELEASE}`;
const STAND_IN = 'policy-test-operator';

export async function openWorld(prefix: string): Promise<World> {
  const kube = openTestKube();
  const replicas = await scaleOperator(kube, 0);
  const namespace = await kube.namespace(prefix);
  const ns = namespace.name;
  await grantRights(kube, ns);
  const holder = await createPod(kube, ns, 'holder');
  const sibling = await createPod(kube, ns, 'sibling');
  return {
    kube,
    namespace: ns,
    holder,
    sibling,
    base: await readBase(kube),
    who: {
      admin: { kind: 'admin' },
      editor: { kind: 'user', name: 'eve', groups: ['system:authenticated'] },
      holder: await boundToken(kube, ns, 'default', holder),
      sibling: await boundToken(kube, ns, 'default', sibling),
      unboundPodUser: await unboundToken(kube, ns, 'default'),
      operator: await operatorIdentity(kube),
      impostor: { kind: 'user', name: OPERATOR_USER, groups: ['system:serviceaccounts', 'system:authenticated'] },
      garbageCollector: systemAccount('generic-garbage-collector'),
      namespaceController: systemAccount('namespace-controller'),
      node: { kind: 'user', name: 'system:node:far-away', groups: ['system:nodes', 'system:authenticated'] },
    },
    async [Symbol.asyncDispose]() {
      await kube.ask('DELETE', podPath(OPERATOR_NAMESPACE, STAND_IN));
      await namespace[Symbol.asyncDispose]();
      await scaleOperator(kube, replicas);
      kube.close();
    },
  };
}

export const podPath = (namespace: string, name = ''): string =>
  `/api/v1/namespaces/${namespace}/pods/${name}`.replace(/\/$/, '');

/** A Pod that waits for `billing`, as its author writes it. */
export function aPod(change: { readonly metadata?: object; readonly spec?: object } = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'probe', labels: { 'kilit.dev/lock': 'billing' }, ...change.metadata },
    spec: {
      schedulerName: 'nobody',
      containers: [{ name: 'main', image: 'example/main:1' }],
      ...change.spec,
    },
  };
}

/** The cluster's token base: a test of an earlier run may have raised it, and it never falls. */
export async function readBase(kube: Kube): Promise<bigint> {
  const { metadata } = await kube.must('GET', `/api/v1/namespaces/${OPERATOR_NAMESPACE}`);
  return BigInt(metadata?.annotations?.['kilit.dev/token-base'] ?? '0');
}

async function createPod(kube: Kube, namespace: string, name: string): Promise<TestPod> {
  const pod = aPod({ metadata: { name, labels: { 'kilit.dev/lock': 'billing', app: 'billing' } } });
  const { metadata } = await kube.must('POST', podPath(namespace), { body: pod });
  return { name, uid: metadata?.uid ?? '' };
}

/** The operator's user name and a token bound to a Pod of its ServiceAccount. Ends with the ServiceAccount. */
export async function operatorIdentity(kube: Kube): Promise<Identity> {
  return boundToken(kube, OPERATOR_NAMESPACE, RELEASE, await createStandIn(kube));
}

async function createStandIn(kube: Kube): Promise<TestPod> {
  const body = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: STAND_IN },
    spec: {
      schedulerName: 'nobody',
      serviceAccountName: RELEASE,
      containers: [{ name: 'main', image: 'example/main:1' }],
    },
  };
  const made = await kube.ask('POST', podPath(OPERATOR_NAMESPACE), { body });
  const pod = made.status === 409 ? await kube.must('GET', podPath(OPERATOR_NAMESPACE, STAND_IN)) : made.body;
  return { name: STAND_IN, uid: pod.metadata?.uid ?? '' };
}

async function boundToken(kube: Kube, namespace: string, account: string, pod: TestPod): Promise<Identity> {
  return requestToken(kube, namespace, account, {
    boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: pod.name, uid: pod.uid },
  });
}

const unboundToken = (kube: Kube, namespace: string, account: string): Promise<Identity> =>
  requestToken(kube, namespace, account, {});

async function requestToken(kube: Kube, namespace: string, account: string, spec: object): Promise<Identity> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}`;
  await until(`ServiceAccount ${account}`, async () => (await kube.ask('GET', path)).status === 200);
  const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec };
  const { status } = await kube.must('POST', `${path}/token`, { body });
  return { kind: 'token', token: (status as { token: string }).token };
}

const systemAccount = (name: string): Identity => ({
  kind: 'user',
  name: `system:serviceaccount:kube-system:${name}`,
  groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system', 'system:authenticated'],
});

/** What the operator grants to the Pods of a namespace, and the built-in role `edit` for a person. */
async function grantRights(kube: Kube, namespace: string): Promise<void> {
  const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
  const apiGroup = 'rbac.authorization.k8s.io';
  await until('ServiceAccount default', async () => {
    const answer = await kube.ask('GET', `/api/v1/namespaces/${namespace}/serviceaccounts/default`);
    return answer.status === 200;
  });
  await kube.must('POST', `${rbac}/roles`, {
    body: {
      metadata: { name: 'leases' },
      rules: [{ apiGroups: ['coordination.k8s.io'], resources: ['leases'], verbs: ['*'] }],
    },
  });
  await kube.must('POST', `${rbac}/rolebindings`, {
    body: {
      metadata: { name: 'pods' },
      roleRef: { apiGroup, kind: 'Role', name: 'leases' },
      subjects: [{ apiGroup, kind: 'Group', name: `system:serviceaccounts:${namespace}` }],
    },
  });
  await kube.must('POST', `${rbac}/rolebindings`, {
    body: {
      metadata: { name: 'editor' },
      roleRef: { apiGroup, kind: 'ClusterRole', name: 'edit' },
      subjects: [{ apiGroup, kind: 'User', name: 'eve' }],
    },
  });
}

/** By Helm, so that the chart goes on owning the field and a later upgrade finds no conflict. */
async function scaleOperator(kube: Kube, replicas: number): Promise<number> {
  const path = `/apis/apps/v1/namespaces/${OPERATOR_NAMESPACE}/deployments/${RELEASE}`;
  const present = Number((await kube.must('GET', path)).spec?.replicas);
  if (present !== replicas) helm(...installArgs({ replicas }));
  const selector = encodeURIComponent('app.kubernetes.io/component=operator');
  await until('the operator to stop', async () => {
    if (replicas > 0) return true;
    const { items } = await kube.must('GET', `${podPath(OPERATOR_NAMESPACE)}?labelSelector=${selector}`);
    return (items as unknown[]).length === 0;
  });
  return present;
}

/** Deletes objects of the chart and installs them again in the end: as if they had not been installed meanwhile. */
export async function without(kube: Kube, ...paths: readonly string[]): Promise<AsyncDisposable> {
  for (const path of paths) await kube.must('DELETE', path);
  return {
    async [Symbol.asyncDispose]() {
      helm(...installArgs({ replicas: 0 }));
      for (const path of paths) await kube.must('GET', path);
    },
  };
}

const UNTIL_MS = 60_000;

/** Polls until `done`; a test's own bound on everything that the cluster does later. */
export async function until(what: string, done: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + UNTIL_MS;
  while (!(await done())) {
    if (performance.now() > deadline) throw new Error(`Waited ${UNTIL_MS / 1000} s for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
