/**
 * A lock's Lease against its own holder, which may renew and release and nothing else.
 *
 * Behind it: the prototype's trials, in which a holder removed its Lease by a dangling owner and held for 68 years.
 */
import { describe } from 'vitest';
import { type Attack, type Attempt, tryAll, useWorld } from './attempts.ts';
import {
  leasePath,
  microTime,
  openLeaseWorld,
  released,
  renewed,
  replacing,
  toHolder,
  withAnnotations,
  withMetadata,
  withSpec,
} from './leases.ts';

const at = useWorld(openLeaseWorld);

const attacks: readonly Attack[] = [
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
    send: replacing('kilit.billing', toHolder),
    refused: /may change spec\.renewTime/,
  },
  {
    name: 'the holder takes its confirmation back',
    as: 'holder',
    send: replacing('kilit.billing', (lease) => withSpec(lease, { renewTime: lease.spec.acquireTime })),
    refused:
      /renewTime must differ from acquireTime, got \S+ for both: equal times say that the holder has not confirmed/,
  },
  {
    name: 'the holder removes renewTime',
    as: 'holder',
    send: replacing('kilit.billing', (lease) => withSpec(lease, { renewTime: undefined })),
    refused: /renewTime must not be removed while the lock is held/,
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
];

describe('the holder and its Lease', () => {
  tryAll(at, { attacks, legitimate });
});
