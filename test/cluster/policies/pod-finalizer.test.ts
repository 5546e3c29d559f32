/** The finalizer of `takeover: PodGone`: the proof of a Pod's end is nobody's to take away but the operator's. */
import { afterAll, describe, expect, test } from 'vitest';
import type { Identity } from '../../support/kube.ts';
import { type Attack, type Attempt, tryAll, useWorld } from './attempts.ts';
import { creatingPod, patchingPod } from './pods.ts';
import { aPod, openWorld, podPath, type World } from './world.ts';

const FINALIZER = 'kilit.dev/holder';
const finalizers = (...names: readonly string[]) => ({ metadata: { finalizers: names } });
const BREAKER: Identity = { kind: 'user', name: 'bob', groups: ['system:authenticated'] };

/** `holder` has the finalizer, `sibling` none, `plain` has no lock. Bob may edit and has the verb `break` on the lock. */
const at = useWorld(
  () => openWorld('finalizer'),
  async ({ kube, namespace, who }) => {
    await kube.must('POST', podPath(namespace), { body: aPod({ metadata: { name: 'plain', labels: { app: 'x' } } }) });
    await kube.must('PATCH', podPath(namespace, 'holder'), { as: who.operator, body: finalizers(FINALIZER) });
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}`;
    const apiGroup = 'rbac.authorization.k8s.io';
    await kube.must('POST', `${rbac}/roles`, {
      body: {
        metadata: { name: 'breaker' },
        rules: [
          { apiGroups: ['kilit.dev'], resources: ['distributedlocks'], resourceNames: ['billing'], verbs: ['break'] },
        ],
      },
    });
    for (const roleRef of [
      { apiGroup, kind: 'Role', name: 'breaker' },
      { apiGroup, kind: 'ClusterRole', name: 'edit' },
    ]) {
      await kube.must('POST', `${rbac}/rolebindings`, {
        body: {
          metadata: { name: `bob-${roleRef.name}` },
          roleRef,
          subjects: [{ apiGroup, kind: 'User', name: 'bob' }],
        },
      });
    }
  },
);

// No operator runs here that could let the Pod go.
afterAll(() =>
  at.world.kube.must('PATCH', podPath(at.world.namespace, 'holder'), { body: { metadata: { finalizers: [] } } }),
);

const removal =
  /is removed by the kilit operator, when the end of this Pod is confirmed or it does not hold lock billing/;

const attacks: readonly Attack[] = [
  { name: 'a person removes it', as: 'editor', send: patchingPod('holder', finalizers()), refused: removal },
  {
    name: 'a person puts another in its place',
    as: 'editor',
    send: patchingPod('holder', finalizers('example.com/x')),
    refused: removal,
  },
  {
    name: 'a person removes it with a strategic patch',
    as: 'editor',
    send: (world: World, as: Identity) =>
      world.kube.ask('PATCH', `${podPath(world.namespace, 'holder')}?dryRun=All`, {
        as,
        body: { metadata: { '$deleteFromPrimitiveList/finalizers': [FINALIZER] } },
        patch: 'strategic',
      }),
    refused: removal,
  },
  {
    name: 'the namespace controller removes it',
    as: 'namespaceController',
    send: patchingPod('holder', finalizers()),
    refused: /cannot patch resource "pods"|is removed by the kilit operator/,
  },
  {
    name: 'a person puts it on a Pod',
    as: 'editor',
    send: patchingPod('sibling', finalizers(FINALIZER)),
    refused: /is put there by the kilit operator only, not by "eve"; leave it out/,
  },
  {
    name: 'an administrator puts it on a Pod',
    as: 'admin',
    send: patchingPod('sibling', finalizers(FINALIZER)),
    refused: /is put there by the kilit operator only/,
  },
  {
    name: 'a Pod is created with it',
    as: 'editor',
    send: creatingPod(
      aPod({ metadata: { name: 'probe', labels: { 'kilit.dev/lock': 'billing' }, finalizers: [FINALIZER] } }),
    ),
    refused: /is put there by the kilit operator only, not by "eve"; remove it from the manifest/,
  },
];

const legitimate: readonly Attempt[] = [
  { name: 'the operator removes it', as: 'operator', send: patchingPod('holder', finalizers()) },
  { name: 'the operator puts it on a Pod', as: 'operator', send: patchingPod('sibling', finalizers(FINALIZER)) },
  {
    name: 'an administrator, who may break any lock, removes it',
    as: 'admin',
    send: patchingPod('holder', finalizers()),
  },
  {
    name: 'a person adds a finalizer beside it',
    as: 'editor',
    send: patchingPod('holder', finalizers(FINALIZER, 'example.com/x')),
  },
  {
    name: 'a person labels that Pod',
    as: 'editor',
    send: patchingPod('holder', { metadata: { labels: { team: 'a' } } }),
  },
  {
    name: 'a kubelet writes the status of that Pod',
    as: 'admin',
    send: patchingPod('holder', { status: { phase: 'Failed', reason: 'Evicted' } }, 'status'),
  },
  {
    name: 'somebody writes the finalizers of a Pod without a lock',
    as: 'editor',
    send: patchingPod('plain', finalizers('example.com/x')),
  },
];

describe('the finalizer of a holder', () => {
  tryAll(at, { attacks, legitimate });

  test('can be removed by whoever has the verb break on this lock, and through pods/status by nobody who lacks it', async () => {
    const send = patchingPod('holder', finalizers());
    expect((await send(at.world, BREAKER)).status).toBe(200);
    const sneak = await patchingPod('holder', finalizers(), 'status')(at.world, at.world.who.node);
    // The API server may keep the finalizers by itself on this path; if it does not, the policy refuses.
    if (sneak.status === 200) expect(sneak.body.metadata).toHaveProperty('finalizers', [FINALIZER]);
    else expect(sneak.status).toBeGreaterThanOrEqual(403);
  });
});
