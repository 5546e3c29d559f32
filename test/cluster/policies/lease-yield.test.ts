/** A lock's Lease whose holder was asked to yield: the request stays until the next grant, whoever writes. */
import { describe } from 'vitest';
import { type Attack, type Attempt, tryAll, useWorld } from './attempts.ts';
import {
  type Lease,
  openLeaseWorld,
  readLease,
  released,
  renewed,
  replacing,
  toSibling,
  withAnnotations,
  withMetadata,
  write,
} from './leases.ts';

const YIELD = 'kilit.dev/yield';

const at = useWorld(openLeaseWorld, async (world) => {
  const lease = await readLease(world, 'kilit.billing');
  await write(world, world.who.operator, withAnnotations(lease, { [YIELD]: 'NodeDrain' }));
});

function unasked(lease: Lease): Lease {
  const { [YIELD]: _, ...annotations } = lease.metadata.annotations;
  return withMetadata(lease, { annotations });
}

const onlyTheHolderRenews = /its holder "holder_.*" may change spec\.renewTime/;

const attacks: readonly Attack[] = [
  {
    name: 'the holder takes the request away',
    as: 'holder',
    send: replacing('kilit.billing', unasked),
    refused: onlyTheHolderRenews,
  },
  {
    name: 'the holder takes the request away with a renewal',
    as: 'holder',
    send: replacing('kilit.billing', (lease) => unasked(renewed(lease))),
    refused: onlyTheHolderRenews,
  },
  {
    name: 'the holder writes another reason',
    as: 'holder',
    send: replacing('kilit.billing', (lease) => withAnnotations(lease, { [YIELD]: 'MaxHold' })),
    refused: onlyTheHolderRenews,
  },
  {
    name: 'a waiter asks the holder to yield',
    as: 'sibling',
    send: replacing('kilit.billing', (lease) => withAnnotations(lease, { [YIELD]: 'Requested' })),
    refused: /only that Pod renews or releases it/,
  },
  {
    name: 'an administrator asks the holder to yield behind the back of the operator',
    as: 'admin',
    send: replacing('kilit.billing', (lease) => withAnnotations(lease, { [YIELD]: 'Requested' })),
    refused: /only that Pod renews or releases it/,
  },
  {
    name: 'the operator takes the request back',
    as: 'operator',
    send: replacing('kilit.billing', unasked),
    refused: /only the next grant removes it/,
  },
  {
    name: 'the operator grants and keeps the request',
    as: 'operator',
    send: replacing('kilit.billing', toSibling),
    refused: /a grant must remove annotation kilit\.dev\/yield, got "NodeDrain": it asked the former holder/,
  },
];

const legitimate: readonly Attempt[] = [
  { name: 'the holder renews', as: 'holder', send: replacing('kilit.billing', renewed) },
  { name: 'the holder releases', as: 'holder', send: replacing('kilit.billing', released) },
  {
    name: 'the operator writes another reason',
    as: 'operator',
    send: replacing('kilit.billing', (lease) => withAnnotations(lease, { [YIELD]: 'Requested' })),
  },
  { name: 'the operator frees', as: 'operator', send: replacing('kilit.billing', released) },
  {
    name: 'the operator grants, and the request goes',
    as: 'operator',
    send: replacing('kilit.billing', (lease, world) => unasked(toSibling(lease, world))),
  },
];

describe('a request to yield', () => {
  tryAll(at, { attacks, legitimate });
});
