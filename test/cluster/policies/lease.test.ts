/**
 * The token rule on the real API server: who may write a lock's Lease, and what.
 *
 * Reports behind it: castai/kvisor#152 (create on Leases cannot be limited by name), kubernetes/kubernetes#47671 (the
 * holder's written duration counts), and the prototype's trials (theft, dangling owner, a duration of 68 years).
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  aLease,
  creating,
  granted,
  leasePath,
  microTime,
  readLease,
  released,
  renewed,
  replacing,
  withAnnotations,
  withMetadata,
  withSpec,
  write,
} from './leases.ts';
import { type Attempt, openWorld, outcome, type World } from './world.ts';

let world: World;

beforeAll(async () => {
  world = await openWorld('lease');
  const { operator, holder } = world.who;
  for (const lock of ['billing', 'spare', 'fresh']) {
    await world.kube.must('POST', leasePath(world), { as: operator, body: aLease(lock) });
  }
  await write(world, operator, granted(await readLease(world, 'kilit.billing'), world.holder));
  await write(world, holder, renewed(await readLease(world, 'kilit.billing')));
});
afterAll(() => world?.[Symbol.asyncDispose]());

/** The Lease `kilit.billing` is held by Pod `holder`, `kilit.spare` and `kilit.fresh` are free. */
const attacks: readonly (Attempt & { readonly refused: RegExp })[] = [
  {
    name: 'a person with role edit steals a held lock',
    as: 'editor',
    send: replacing('kilit.billing', (lease, { sibling }) => granted(lease, sibling)),
    refused: /Lease kilit\.billing is held by "holder_[-0-9a-f]+", only that Pod renews or releases it; "eve" may not/,
  },
  {
    name: 'a cluster administrator steals it with a merge patch',
    as: 'admin',
    send: (world, as) =>
      world.kube.ask('PATCH', `${leasePath(world, 'kilit.billing')}?dryRun=All`, {
        as,
        body: { spec: { holderIdentity: 'me' } },
      }),
    refused: /is held by "holder_.*"admin" may not change it/,
  },
  {
    name: 'a cluster administrator steals it with a server-side apply',
    as: 'admin',
    send: (world, as) =>
      world.kube.ask('PATCH', `${leasePath(world, 'kilit.billing')}?dryRun=All&fieldManager=me&force=true`, {
        as,
        patch: 'apply',
        body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', spec: { holderIdentity: 'me' } },
      }),
    refused: /is held by "holder_/,
  },
  {
    name: 'a cluster administrator frees it',
    as: 'admin',
    send: replacing('kilit.billing', released),
    refused: /stop the Pod that holds it to free it/,
  },
  {
    name: 'a sibling Pod of the same ServiceAccount takes it, with the right token',
    as: 'sibling',
    send: replacing('kilit.billing', (lease, { sibling }) => granted(lease, sibling)),
    refused: /is held by "holder_/,
  },
  {
    name: 'a sibling Pod renews it for the holder',
    as: 'sibling',
    send: replacing('kilit.billing', renewed),
    refused: /is held by "holder_/,
  },
  {
    name: 'a sibling Pod releases it',
    as: 'sibling',
    send: replacing('kilit.billing', released),
    refused: /is held by "holder_/,
  },
  {
    name: "the Pods' ServiceAccount renews it with a token bound to no Pod",
    as: 'unboundPodUser',
    send: replacing('kilit.billing', renewed),
    refused: /is held by "holder_/,
  },
  {
    name: 'a waiter grants itself a free lock, with the right token',
    as: 'sibling',
    send: replacing('kilit.spare', (lease, { sibling }) => granted(lease, sibling)),
    refused: /Lease kilit\.spare is free, only the kilit operator grants it/,
  },
  {
    name: "somebody with the operator's user name but no Pod grants",
    as: 'impostor',
    send: replacing('kilit.spare', (lease, { sibling }) => granted(lease, sibling)),
    refused: /only the kilit operator grants it; "system:serviceaccount:kilit-system:kilit" may not/,
  },
  {
    name: "somebody with the operator's user name but no Pod creates a Lease",
    as: 'impostor',
    send: creating(() => aLease('other')),
    refused: /Lease kilit\.other is made by the kilit operator.*create DistributedLock other instead/,
  },
  {
    name: "somebody with the operator's user name but no Pod deletes a Lease",
    as: 'impostor',
    send: (world, as) => world.kube.ask('DELETE', `${leasePath(world, 'kilit.billing')}?dryRun=All`, { as }),
    refused: /Lease kilit\.billing is deleted by the kilit operator/,
  },
  {
    name: 'a person creates the Lease of a lock',
    as: 'editor',
    send: creating(() => aLease('other')),
    refused: /Lease kilit\.other is made by the kilit operator, not by "eve"/,
  },
  {
    name: 'a person creates it by PUT',
    as: 'admin',
    send: (world, as) =>
      world.kube.ask('PUT', `${leasePath(world, 'kilit.other')}?dryRun=All`, { as, body: aLease('other') }),
    refused: /Lease kilit\.other is made by the kilit operator/,
  },
  {
    name: 'a person creates it by server-side apply',
    as: 'admin',
    send: (world, as) =>
      world.kube.ask('PATCH', `${leasePath(world, 'kilit.other')}?dryRun=All&fieldManager=me`, {
        as,
        patch: 'apply',
        body: aLease('other'),
      }),
    refused: /Lease kilit\.other is made by the kilit operator/,
  },
  {
    name: 'a person creates it without the label, so that the token rule would not see it',
    as: 'editor',
    send: creating(() => withMetadata(aLease('other'), { labels: {} })),
    refused: /names that start with "kilit\." belong to kilit, and its label kilit\.dev\/lock must be "other", got ""/,
  },
  {
    name: 'a person lets the API server generate a name that starts with kilit.',
    as: 'editor',
    send: creating(() => withMetadata(aLease('x'), { name: undefined, generateName: 'kilit.bill' })),
    refused: /names that start with "kilit\." belong to kilit|is made by the kilit operator/,
  },
  {
    name: 'a person takes the label off, so that the token rule would not see it',
    as: 'admin',
    send: (world, as) =>
      world.kube.ask('PATCH', `${leasePath(world, 'kilit.billing')}?dryRun=All`, {
        as,
        body: { metadata: { labels: { 'kilit.dev/lock': null } } },
      }),
    refused: /label kilit\.dev\/lock must be "billing", got ""|is held by "holder_/,
  },
  {
    name: 'a person deletes it',
    as: 'editor',
    send: (world, as) => world.kube.ask('DELETE', `${leasePath(world, 'kilit.billing')}?dryRun=All`, { as }),
    refused:
      /Lease kilit\.billing is deleted by the kilit operator, not by "eve"; delete DistributedLock billing instead/,
  },
  {
    name: 'a person deletes all Leases of the namespace at once',
    as: 'editor',
    send: (world, as) => world.kube.ask('DELETE', `${leasePath(world)}?dryRun=All`, { as }),
    refused: /is deleted by the kilit operator, not by "eve"/,
  },
  {
    name: 'the holder deletes it',
    as: 'holder',
    send: (world, as) => world.kube.ask('DELETE', `${leasePath(world, 'kilit.billing')}?dryRun=All`, { as }),
    refused: /is deleted by the kilit operator/,
  },
  ...[
    { what: 'the duration to 68 years', spec: { leaseDurationSeconds: 2_147_483_647 } },
    { what: 'acquireTime', spec: { acquireTime: microTime(new Date(0)) } },
    { what: 'leaseTransitions', spec: { leaseTransitions: 0 } },
    { what: 'the holder to its sibling', spec: { holderIdentity: 'sibling_00000000-0000-0000-0000-000000000000' } },
  ].map(({ what, spec }) => ({
    name: `the holder changes ${what}`,
    as: 'holder' as const,
    send: replacing('kilit.billing', (lease) => withSpec(lease, spec)),
    refused: /its holder "holder_.*" may change spec\.renewTime, and set spec\.holderIdentity to "", and nothing else/,
  })),
  ...[
    {
      what: 'adds an owner that does not exist, so that the garbage collector deletes it',
      metadata: {
        ownerReferences: [
          { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: '00000000-0000-0000-0000-000000000000' },
        ],
      },
    },
    { what: 'adds a finalizer', metadata: { finalizers: ['example.com/keep'] } },
    { what: 'adds a label', metadata: { labels: { 'kilit.dev/lock': 'billing', other: 'x' } } },
  ].map(({ what, metadata }) => ({
    name: `the holder ${what}`,
    as: 'holder' as const,
    send: replacing('kilit.billing', (lease) => withMetadata(lease, metadata)),
    refused: /its holder "holder_.*" may change spec\.renewTime/,
  })),
  {
    name: 'the holder gives itself a greater token',
    as: 'holder',
    send: replacing('kilit.billing', (lease) => withAnnotations(lease, { 'kilit.dev/fencing-token': '999999999' })),
    refused: /may change spec\.renewTime/,
  },
  {
    name: 'the holder changes the terms of its grant',
    as: 'holder',
    send: replacing('kilit.billing', (lease) => withAnnotations(lease, { 'kilit.dev/grace-seconds': '0' })),
    refused: /may change spec\.renewTime/,
  },
  {
    name: 'the holder acquires its own lock again',
    as: 'holder',
    send: replacing('kilit.billing', (lease, { holder }) => granted(lease, holder)),
    refused: /may change spec\.renewTime/,
  },
  {
    name: 'the holder removes renewTime',
    as: 'holder',
    send: replacing('kilit.billing', (lease) => withSpec(lease, { renewTime: undefined })),
    refused: /renewTime must not be removed while the lock is held/,
  },
  {
    name: 'the operator creates a Lease that is held already (the canary)',
    as: 'operator',
    send: creating(({ sibling }) => granted(withMetadata(aLease('canary'), { resourceVersion: undefined }), sibling)),
    refused: /Lease kilit\.canary must be created free, not held by "sibling_/,
  },
  {
    name: 'the operator creates a Lease with a token',
    as: 'operator',
    send: creating(() => withAnnotations(aLease('other'), { 'kilit.dev/fencing-token': '7' })),
    refused: /the fencing token must be 0 at creation, got "7"/,
  },
  {
    name: 'the operator creates a Lease with the label of another lock',
    as: 'operator',
    send: creating(() => withMetadata(aLease('other'), { labels: { 'kilit.dev/lock': 'billing' } })),
    refused: /label kilit\.dev\/lock must be "other", got "billing"/,
  },
  ...[
    { what: 'one less', by: -1n },
    { what: 'one more', by: 1n },
  ].map(({ what, by }) => ({
    name: `the operator grants with a token of ${what} than the rule says`,
    as: 'operator' as const,
    send: replacing('kilit.spare', (lease, { sibling }) => {
      const grant = granted(lease, sibling);
      const token = BigInt(grant.metadata.annotations['kilit.dev/fencing-token'] ?? '') + by;
      return withAnnotations(grant, { 'kilit.dev/fencing-token': String(token) });
    }),
    refused:
      /the fencing token must be \d+ for this grant, got "\d+"; it is max\(resourceVersion \+ base, former token \+ 1\)/,
  })),
  {
    name: 'the operator grants with the token of the grant before',
    as: 'operator',
    send: replacing('kilit.billing', (lease, { sibling }) =>
      withAnnotations(granted(lease, sibling), {
        'kilit.dev/fencing-token': lease.metadata.annotations['kilit.dev/fencing-token'] ?? '',
      }),
    ),
    refused: /the fencing token must be \d+ for this grant/,
  },
  {
    name: 'the operator writes a token with leading zeros',
    as: 'operator',
    send: replacing('kilit.spare', (lease, { sibling }) => {
      const grant = granted(lease, sibling);
      return withAnnotations(grant, {
        'kilit.dev/fencing-token': `00${grant.metadata.annotations['kilit.dev/fencing-token']}`,
      });
    }),
    refused: /the fencing token must be \d+ for this grant, got "00\d+"/,
  },
  {
    name: 'the operator changes the token without a grant',
    as: 'operator',
    send: replacing('kilit.billing', (lease) => withAnnotations(lease, { 'kilit.dev/fencing-token': '999999999' })),
    refused: /the fencing token must be \d+ as long as nothing is granted, got "999999999"/,
  },
  {
    name: 'the operator removes the token while freeing',
    as: 'operator',
    send: replacing('kilit.billing', (lease) => withMetadata(released(lease), { annotations: {} })),
    refused: /as long as nothing is granted, got ""/,
  },
  {
    name: 'the operator grants with a renewTime that counts as confirmed',
    as: 'operator',
    send: replacing('kilit.spare', (lease, { sibling }) =>
      withSpec(granted(lease, sibling), { renewTime: microTime(new Date(0)) }),
    ),
    refused: /a grant must set a new acquireTime and renewTime equal to it/,
  },
  {
    name: 'the operator grants under the acquireTime of the grant before',
    as: 'operator',
    send: replacing('kilit.billing', (lease, { sibling }) =>
      withSpec(granted(lease, sibling), { acquireTime: lease.spec.acquireTime, renewTime: lease.spec.acquireTime }),
    ),
    refused: /a grant must set a new acquireTime/,
  },
  {
    name: 'the operator grants for 68 years',
    as: 'operator',
    send: replacing('kilit.spare', (lease, { sibling }) =>
      withSpec(granted(lease, sibling), { leaseDurationSeconds: 2_147_483_647 }),
    ),
    refused: /leaseDurationSeconds of a grant must be from 5 to 3600, got 2147483647/,
  },
  {
    name: 'the operator grants without a duration',
    as: 'operator',
    send: replacing('kilit.spare', (lease, { sibling }) =>
      withSpec(granted(lease, sibling), { leaseDurationSeconds: undefined }),
    ),
    refused: /leaseDurationSeconds of a grant must be from 5 to 3600, got 0/,
  },
  {
    name: 'the operator grants without saying how long the grace period is',
    as: 'operator',
    send: replacing('kilit.spare', (lease, { sibling }) =>
      withAnnotations(granted(lease, sibling), { 'kilit.dev/grace-seconds': '30s' }),
    ),
    refused: /a grant must state its terms; not a decimal number of seconds: kilit\.dev\/grace-seconds/,
  },
  {
    name: 'the operator grants to something that is no Pod',
    as: 'operator',
    send: replacing('kilit.spare', (lease) => granted(lease, { name: 'host', uid: 'none' })),
    refused: /holderIdentity "host_none" is not <pod name>_<pod uid>/,
  },
  {
    name: 'the operator renews for a holder',
    as: 'operator',
    send: replacing('kilit.billing', renewed),
    refused: /the operator may not renew it or change the terms of its grant/,
  },
  {
    name: "the operator changes a holder's terms",
    as: 'operator',
    send: replacing('kilit.billing', (lease) => withSpec(lease, { leaseDurationSeconds: 3600 })),
    refused: /the operator may not renew it or change the terms of its grant/,
  },
];

const legitimate: readonly Attempt[] = [
  { name: 'the holder renews', as: 'holder', send: replacing('kilit.billing', renewed) },
  { name: 'the holder releases', as: 'holder', send: replacing('kilit.billing', released) },
  {
    name: 'the holder renews with a server-side apply, which changes managedFields',
    as: 'holder',
    send: (world, as) =>
      world.kube.ask('PATCH', `${leasePath(world, 'kilit.billing')}?dryRun=All&fieldManager=kilit&force=true`, {
        as,
        patch: 'apply',
        body: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', spec: { renewTime: microTime(new Date()) } },
      }),
  },
  { name: 'the operator creates', as: 'operator', send: creating(() => aLease('other')) },
  {
    name: 'the operator grants a free lock',
    as: 'operator',
    send: replacing('kilit.spare', (lease, { sibling }) => granted(lease, sibling)),
  },
  {
    name: 'the operator passes a held lock on',
    as: 'operator',
    send: replacing('kilit.billing', (lease, { sibling }) => granted(lease, sibling)),
  },
  {
    name: 'the operator grants the same Pod again, with a new token',
    as: 'operator',
    send: replacing('kilit.billing', (lease, { holder }) => granted(lease, holder)),
  },
  {
    name: 'the operator breaks the lock',
    as: 'operator',
    send: replacing('kilit.billing', (lease) =>
      withSpec(granted(lease, { name: 'x', uid: 'y' }), {
        holderIdentity: 'break-00000000-0000-0000-0000-000000000000',
      }),
    ),
  },
  { name: 'the operator frees', as: 'operator', send: replacing('kilit.billing', released) },
  {
    name: 'the operator adopts the Lease of a former lock, held as it is',
    as: 'operator',
    send: replacing('kilit.billing', (lease) =>
      withMetadata(lease, {
        ownerReferences: [
          {
            apiVersion: 'kilit.dev/v1alpha1',
            kind: 'DistributedLock',
            name: 'billing',
            uid: '00000000-0000-0000-0000-000000000000',
          },
        ],
      }),
    ),
  },
  ...(['operator', 'garbageCollector', 'namespaceController'] as const).map((as) => ({
    name: `${as} deletes`,
    as,
    send: (world: World, who: Parameters<Attempt['send']>[1]) =>
      world.kube.ask('DELETE', `${leasePath(world, 'kilit.billing')}?dryRun=All`, { as: who }),
  })),
  {
    name: 'a person creates a Lease of another name, already held and labelled',
    as: 'editor',
    send: creating(() => withSpec(withMetadata(aLease('x'), { name: 'kilit-operator' }), { holderIdentity: 'me' })),
  },
];

describe('a Lease of a lock', () => {
  test.each(attacks)('refuses: $name', async ({ refused, ...attempt }) => {
    expect(await outcome(world, attempt)).toMatch(refused);
  });

  test.each(legitimate)('allows: $name', async (attempt) => {
    expect(await outcome(world, attempt)).toBe('allowed');
  });

  test('never lets a coordinated election choose the holder', async () => {
    const change = replacing('kilit.fresh', (lease) =>
      withSpec(lease, { strategy: 'OldestEmulationVersion', preferredHolder: 'me' }),
    );
    const answer = await change(world, world.who.operator);
    // Where the gate is off the API server drops both fields; where it is on the policy refuses them.
    if (answer.status === 200) expect(answer.body.spec).not.toHaveProperty('strategy');
    else
      expect(answer.body.message).toMatch(/spec\.strategy and spec\.preferredHolder would let a coordinated election/);
  });
});
