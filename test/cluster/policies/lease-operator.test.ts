/**
 * A lock's Lease against the operator: each grant by the rule of the token, nothing changed under a holder.
 *
 * Report behind it: kubernetes/kubernetes#47671 (the holder's written duration counts).
 */
import { describe, expect, test } from 'vitest';
import { type Attack, type Attempt, tryAll, useWorld } from './attempts.ts';
import {
  aLease,
  creating,
  granted,
  type Lease,
  microTime,
  openLeaseWorld,
  released,
  renewed,
  replacing,
  toHolder,
  toSibling,
  withAnnotations,
  withMetadata,
  withSpec,
} from './leases.ts';

const at = useWorld(openLeaseWorld);

const BREAK = 'break-00000000-0000-0000-0000-000000000000_broken';
const YIELD = { 'kilit.dev/yield': 'NodeDrain' };

const attacks: readonly Attack[] = [
  {
    name: 'the operator creates a Lease that is held already (the canary)',
    as: 'operator',
    send: creating((at) => toSibling(aLease('canary'), at)),
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
    send: replacing('kilit.spare', (lease, at) => {
      const grant = toSibling(lease, at);
      const token = BigInt(grant.metadata.annotations['kilit.dev/fencing-token'] ?? '') + by;
      return withAnnotations(grant, { 'kilit.dev/fencing-token': String(token) });
    }),
    refused:
      /the fencing token must be \d+ for this grant, got "\d+"; it is max\(resourceVersion \+ base, former token \+ 1\)/,
  })),
  {
    name: 'the operator grants with the token of the grant before',
    as: 'operator',
    send: replacing('kilit.billing', (lease, at) =>
      withAnnotations(toSibling(lease, at), {
        'kilit.dev/fencing-token': lease.metadata.annotations['kilit.dev/fencing-token'] ?? '',
      }),
    ),
    refused: /the fencing token must be \d+ for this grant/,
  },
  {
    name: 'the operator writes a token with leading zeros',
    as: 'operator',
    send: replacing('kilit.spare', (lease, at) => {
      const grant = toSibling(lease, at);
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
    send: replacing('kilit.spare', (lease, at) =>
      withSpec(toSibling(lease, at), { renewTime: microTime(new Date(0)) }),
    ),
    refused: /a grant must set a new acquireTime and renewTime equal to it/,
  },
  {
    name: 'the operator grants under the acquireTime of the grant before',
    as: 'operator',
    send: replacing('kilit.billing', (lease, at) =>
      withSpec(toSibling(lease, at), { acquireTime: lease.spec.acquireTime, renewTime: lease.spec.acquireTime }),
    ),
    refused: /a grant must set a new acquireTime/,
  },
  {
    name: 'the operator grants for 68 years',
    as: 'operator',
    send: replacing('kilit.spare', (lease, at) =>
      withSpec(toSibling(lease, at), { leaseDurationSeconds: 2_147_483_647 }),
    ),
    refused: /leaseDurationSeconds of a grant must be from 5 to 3600, got 2147483647/,
  },
  {
    name: 'the operator grants without a duration',
    as: 'operator',
    send: replacing('kilit.spare', (lease, at) => withSpec(toSibling(lease, at), { leaseDurationSeconds: undefined })),
    refused: /leaseDurationSeconds of a grant must be from 5 to 3600, got 0/,
  },
  {
    name: 'the operator grants without saying how long the grace period is',
    as: 'operator',
    send: replacing('kilit.spare', (lease, at) =>
      withAnnotations(toSibling(lease, at), { 'kilit.dev/grace-seconds': '30s' }),
    ),
    refused: /a grant must state its terms; not a decimal number of seconds: kilit\.dev\/grace-seconds/,
  },
  {
    name: 'the operator grants to something that is no Pod',
    as: 'operator',
    send: replacing('kilit.spare', (lease, { base }) => granted(lease, { name: 'host', uid: 'none' }, base)),
    refused: /holderIdentity "host_none" is not <pod name>_<pod uid>/,
  },
  ...[
    'break-00000000-0000-0000-0000-000000000000',
    'break-me_broken',
    'break-00000000-0000-0000-0000-000000000000_none',
  ].map((holderIdentity) => ({
    name: `the operator breaks the lock in the name of ${holderIdentity}`,
    as: 'operator' as const,
    send: replacing('kilit.billing', (lease, at) => withSpec(toHolder(lease, at), { holderIdentity })),
    refused: new RegExp(`holderIdentity "${holderIdentity}" is not`),
  })),
  {
    name: 'the operator breaks the lock and keeps its token',
    as: 'operator',
    send: replacing('kilit.billing', (lease, at) =>
      withAnnotations(withSpec(toHolder(lease, at), { holderIdentity: BREAK }), {
        'kilit.dev/fencing-token': lease.metadata.annotations['kilit.dev/fencing-token'] ?? '',
      }),
    ),
    refused: /the fencing token must be \d+ for this grant/,
  },
  {
    name: 'the operator asks the holder to yield for no known reason',
    as: 'operator',
    send: replacing('kilit.billing', (lease) => withAnnotations(lease, { 'kilit.dev/yield': 'Please' })),
    refused: /annotation kilit\.dev\/yield must be NewerRevision, .* or Requested, got "Please"/,
  },
  {
    name: 'the operator asks nobody to yield',
    as: 'operator',
    send: replacing('kilit.spare', (lease) => withAnnotations(lease, YIELD)),
    refused:
      /annotation kilit\.dev\/yield is written by the kilit operator only, on a held Lease and with nothing else changed/,
  },
  {
    name: 'the operator creates a Lease that asks to yield',
    as: 'operator',
    send: creating(() => withAnnotations(aLease('other'), YIELD)),
    refused: /annotation kilit\.dev\/yield is written by the kilit operator only, on a held Lease/,
  },
  {
    name: 'the operator grants and leaves the request to the former holder',
    as: 'operator',
    send: replacing('kilit.billing', (lease, at) => withAnnotations(toSibling(lease, at), YIELD)),
    refused: /a grant must remove annotation kilit\.dev\/yield, got "NodeDrain"/,
  },
  ...[
    { what: 'renews', change: renewed },
    { what: 'frees', change: released },
    {
      what: 'changes the node',
      change: (lease: Lease) => withAnnotations(lease, { 'kilit.dev/node': 'other' }),
    },
    { what: 'adds an annotation', change: (lease: Lease) => withAnnotations(lease, { note: 'x' }) },
    { what: 'adds a finalizer', change: (lease: Lease) => withMetadata(lease, { finalizers: ['example.com/x'] }) },
  ].map(({ what, change }) => ({
    name: `the operator asks the holder to yield and ${what} with it`,
    as: 'operator' as const,
    send: replacing('kilit.billing', (lease) => withAnnotations(change(lease), YIELD)),
    refused: /kilit\.dev\/yield is written by the kilit operator only|may not renew it or change the terms/,
  })),
  {
    name: 'the operator says that another holder was broken',
    as: 'operator',
    send: replacing('kilit.billing', (lease) => withAnnotations(lease, { 'kilit.dev/broken-holder': 'x_y' })),
    refused: /the operator may not renew it or change the terms of its grant/,
  },
  {
    name: 'the operator renews for a holder',
    as: 'operator',
    send: replacing('kilit.billing', renewed),
    refused: /the operator may not renew it or change the terms of its grant/,
  },
  ...[
    { key: 'kilit.dev/takeover', value: 'Lease' },
    { key: 'kilit.dev/takeover', value: 'podgone' },
    { key: 'kilit.dev/on-renewal-failure', value: 'Stop' },
    { key: 'kilit.dev/on-renewal-failure', value: '' },
  ].map(({ key, value }) => ({
    name: `the operator grants with ${key} '${value}'`,
    as: 'operator' as const,
    send: replacing('kilit.spare', (lease, at) => withAnnotations(toSibling(lease, at), { [key]: value })),
    refused:
      /kilit\.dev\/takeover must be PodGone or absent, got ".*", kilit\.dev\/on-renewal-failure ContinueFenced or absent, got ".*"/,
  })),
  ...[
    { key: 'kilit.dev/takeover', value: 'PodGone' },
    { key: 'kilit.dev/on-renewal-failure', value: 'ContinueFenced' },
  ].map(({ key, value }) => ({
    name: `the operator gives a holder ${key} '${value}'`,
    as: 'operator' as const,
    send: replacing('kilit.billing', (lease) => withAnnotations(lease, { [key]: value })),
    refused: /the operator may not renew it or change the terms of its grant/,
  })),
  {
    name: 'a holder gives itself the right to go on',
    as: 'holder',
    send: replacing('kilit.billing', (lease) =>
      withAnnotations(renewed(lease), { 'kilit.dev/on-renewal-failure': 'ContinueFenced' }),
    ),
    refused: /may change spec\.renewTime, and set spec\.holderIdentity to "", and nothing else/,
  },
  {
    name: "the operator changes a holder's terms",
    as: 'operator',
    send: replacing('kilit.billing', (lease) => withSpec(lease, { leaseDurationSeconds: 3600 })),
    refused: /the operator may not renew it or change the terms of its grant/,
  },
];

const legitimate: readonly Attempt[] = [
  { name: 'the operator creates', as: 'operator', send: creating(() => aLease('other')) },
  {
    name: 'the operator grants a free lock',
    as: 'operator',
    send: replacing('kilit.spare', toSibling),
  },
  {
    name: 'the operator grants by PodGone and ContinueFenced',
    as: 'operator',
    send: replacing('kilit.spare', (lease, at) =>
      withAnnotations(toSibling(lease, at), {
        'kilit.dev/takeover': 'PodGone',
        'kilit.dev/on-renewal-failure': 'ContinueFenced',
      }),
    ),
  },
  {
    name: 'the operator passes a held lock on',
    as: 'operator',
    send: replacing('kilit.billing', toSibling),
  },
  {
    name: 'the operator grants the same Pod again, with a new token',
    as: 'operator',
    send: replacing('kilit.billing', toHolder),
  },
  {
    name: 'the operator breaks the lock',
    as: 'operator',
    send: replacing('kilit.billing', (lease, { base }) =>
      withSpec(granted(lease, { name: 'x', uid: 'y' }, base), {
        holderIdentity: BREAK,
      }),
    ),
  },
  {
    name: 'the operator asks the holder to yield',
    as: 'operator',
    send: replacing('kilit.billing', (lease) => withAnnotations(lease, YIELD)),
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
];

describe('the operator and a lock’s Lease', () => {
  tryAll(at, { attacks, legitimate });

  test('never lets a coordinated election choose the holder', async () => {
    const change = replacing('kilit.spare', (lease) =>
      withSpec(lease, { strategy: 'OldestEmulationVersion', preferredHolder: 'me' }),
    );
    const answer = await change(at.world, at.world.who.operator);
    // Where the gate is off the API server drops both fields; where it is on the policy refuses them.
    if (answer.status === 200) expect(answer.body.spec).not.toHaveProperty('strategy');
    else
      expect(answer.body.message).toMatch(/spec\.strategy and spec\.preferredHolder would let a coordinated election/);
  });
});
