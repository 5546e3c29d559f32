/** The cluster's token base on the real API server: it only grows, and without it no lock is written. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OPERATOR_NAMESPACE } from '../../support/cluster.ts';
import { aLease, granted, leasePath, replacing } from './leases.ts';
import { type Attempt, openWorld, outcome, type World } from './world.ts';

const PATH = `/api/v1/namespaces/${OPERATOR_NAMESPACE}/configmaps/kilit-token-base`;
const DRY = `${PATH}?dryRun=All`;

let world: World;
let base: bigint;

beforeAll(async () => {
  world = await openWorld('base');
  // Above what a test of an earlier run may have left: the base of this cluster never falls again.
  const { data } = await world.kube.must('GET', PATH);
  base = BigInt(data?.base ?? '0') + 1000n;
  await world.kube.must('PATCH', PATH, { body: { data: { base: String(base) } } });
});
afterAll(() => world?.[Symbol.asyncDispose]());

const setting = (value: () => string | null) => (at: World, as: Parameters<Attempt['send']>[1]) =>
  at.kube.ask('PATCH', DRY, { as, body: { data: { base: value() } } });

const attacks: readonly (Attempt & { readonly refused: RegExp })[] = [
  {
    name: 'an administrator lowers it by one',
    as: 'admin',
    send: setting(() => String(base - 1n)),
    refused:
      /the token base only grows: \d+ is less than \d+; leave it, and where the chart is rendered without the cluster/,
  },
  {
    name: 'an administrator lowers it to a number that is greater as text',
    as: 'admin',
    send: setting(() => '9'),
    refused: /the token base only grows: 9 is less than \d+/,
  },
  {
    name: 'an administrator applies the manifest of a fresh install',
    as: 'admin',
    send: (at, as) =>
      at.kube.ask('PATCH', `${DRY}&fieldManager=me&force=true`, {
        as,
        patch: 'apply',
        body: { apiVersion: 'v1', kind: 'ConfigMap', data: { base: '0' } },
      }),
    refused: /the token base only grows: 0 is less than \d+/,
  },
  {
    name: 'an administrator removes the key',
    as: 'admin',
    send: setting(() => null),
    refused: /base must be a decimal integer below 10\^16, got ""/,
  },
  {
    name: 'an administrator writes no number',
    as: 'admin',
    send: setting(() => '1e9'),
    refused: /base must be a decimal integer below 10\^16, got "1e9"/,
  },
  {
    name: 'an administrator writes too great a number',
    as: 'admin',
    send: setting(() => '10000000000000000'),
    refused: /base must be a decimal integer below 10\^16/,
  },
  {
    name: 'an administrator raises it by a slip of the finger',
    as: 'admin',
    send: setting(() => String(base + 100_000_000_000_001n)),
    refused: /which cannot be taken back; one change may add at most 10\^14/,
  },
  {
    name: 'an administrator makes it immutable',
    as: 'admin',
    send: (at, as) => at.kube.ask('PATCH', DRY, { as, body: { immutable: true } }),
    refused: /the token base must stay mutable/,
  },
  {
    name: 'an administrator deletes it',
    as: 'admin',
    send: (at, as) => at.kube.ask('DELETE', DRY, { as }),
    refused: /the token base is \d+ and must outlive this ConfigMap.*uninstall the chart first/,
  },
  {
    name: 'the namespace takes a raised base with it',
    as: 'namespaceController',
    send: (at, as) => at.kube.ask('DELETE', DRY, { as }),
    refused: /must outlive this ConfigMap/,
  },
  {
    name: 'an administrator deletes all ConfigMaps of the namespace',
    as: 'admin',
    send: (at, as) => at.kube.ask('DELETE', `/api/v1/namespaces/${OPERATOR_NAMESPACE}/configmaps?dryRun=All`, { as }),
    refused: /must outlive this ConfigMap/,
  },
];

describe('the token base', () => {
  test.each(attacks)('refuses: $name', async ({ refused, ...attempt }) => {
    expect(await outcome(world, attempt)).toMatch(refused);
  });

  test('may grow', async () => {
    const send = setting(() => String(base + 100_000_000_000_000n));
    expect(await outcome(world, { name: 'raise', as: 'admin', send })).toBe('allowed');
  });

  test('is added to each token, whatever the revision', async () => {
    const { operator } = world.who;
    await world.kube.must('POST', leasePath(world), { as: operator, body: aLease('based') });
    const withBase = replacing('kilit.based', (lease) => granted(lease, world.sibling, base));
    const without = replacing('kilit.based', (lease) => granted(lease, world.sibling));
    expect(await outcome(world, { name: 'with', as: 'operator', send: withBase })).toBe('allowed');
    expect(await outcome(world, { name: 'without', as: 'operator', send: without })).toMatch(
      /the fencing token must be \d+ for this grant/,
    );
  });
});
