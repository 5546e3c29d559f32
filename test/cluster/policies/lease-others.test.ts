/**
 * A lock's Lease against everybody who does not hold it: people, sibling Pods, those who only call themselves operator.
 *
 * Report behind it: castai/kvisor#152 (`create` on Leases cannot be limited by name).
 */
import { describe } from 'vitest';
import { type Attack, type Attempt, tryAll, useWorld } from './attempts.ts';
import {
  aLease,
  creating,
  leasePath,
  openLeaseWorld,
  released,
  renewed,
  replacing,
  toSibling,
  withMetadata,
  withSpec,
} from './leases.ts';
import type { World } from './world.ts';

const at = useWorld(openLeaseWorld);

const attacks: readonly Attack[] = [
  {
    name: 'a person with role edit steals a held lock',
    as: 'editor',
    send: replacing('kilit.billing', toSibling),
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
    refused: /is held by "holder_.*"[a-z-]*admin" may not change it/,
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
    send: replacing('kilit.billing', toSibling),
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
    send: replacing('kilit.spare', toSibling),
    refused: /Lease kilit\.spare is free, only the kilit operator grants it/,
  },
  {
    name: "somebody with the operator's user name but no Pod grants",
    as: 'impostor',
    send: replacing('kilit.spare', toSibling),
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
];

const legitimate: readonly Attempt[] = [
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

describe('everybody else and a lock’s Lease', () => {
  tryAll(at, { attacks, legitimate });
});
