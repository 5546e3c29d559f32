/** The cluster's token base on the real API server: it only grows, and without it no lock is granted. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OPERATOR_NAMESPACE } from '../../support/install.ts';
import { type Attack, type Attempt, outcome } from './attempts.ts';
import { aLease, granted, leasePath, replacing } from './leases.ts';
import { openWorld, until, type World, without } from './world.ts';

const PATH = `/api/v1/namespaces/${OPERATOR_NAMESPACE}`;
const ANNOTATION = 'kilit.dev/token-base';

let world: World;
let base: bigint;

beforeAll(async () => {
  world = await openWorld('base');
  base = world.base + 1000n;
  await world.kube.must('PATCH', PATH, { body: annotation(String(base)) });
});
// The base never falls, and the tests after this one start from what was there: so without its guard for a moment.
afterAll(async () => {
  if (world === undefined) return;
  {
    await using _ = await without(
      world.kube,
      '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/kilit-token-base',
    );
    const former = annotation(world.base === 0n ? null : String(world.base));
    await until(
      'the base to be free',
      async () => (await world.kube.ask('PATCH', PATH, { body: former })).status === 200,
    );
  }
  await world[Symbol.asyncDispose]();
});

const annotation = (value: string | null) => ({ metadata: { annotations: { [ANNOTATION]: value } } });
const setting =
  (value: () => string | null, sub = ''): Attempt['send'] =>
  (at, as) =>
    at.kube.ask('PATCH', `${PATH}${sub}?dryRun=All`, { as, body: annotation(value()) });

const attacks: readonly Attack[] = [
  {
    name: 'an administrator lowers it by one',
    as: 'admin',
    send: setting(() => String(base - 1n)),
    refused:
      /the token base only grows: \d+ is less than \d+; leave annotation kilit\.dev\/token-base of Namespace kilit-system/,
  },
  {
    name: 'an administrator lowers it to a number that is greater as text',
    as: 'admin',
    send: setting(() => '9'),
    refused: /the token base only grows: 9 is less than \d+/,
  },
  {
    name: 'an administrator removes it',
    as: 'admin',
    send: setting(() => null),
    refused: /the token base only grows: 0 is less than \d+/,
  },
  {
    name: 'an administrator lowers it through namespaces/status',
    as: 'admin',
    send: setting(() => '0', '/status'),
    refused: /the token base only grows: 0 is less than \d+/,
  },
  {
    name: 'an administrator lowers it through namespaces/finalize',
    as: 'admin',
    send: async (at, as) => {
      const namespace = await at.kube.must('GET', PATH);
      const body = { ...namespace, metadata: { ...namespace.metadata, annotations: {} } };
      return at.kube.ask('PUT', `${PATH}/finalize?dryRun=All`, { as, body });
    },
    refused: /the token base only grows: 0 is less than \d+/,
  },
  {
    name: 'an administrator replaces the Namespace by a manifest without it',
    as: 'admin',
    send: async (at, as) => {
      const namespace = await at.kube.must('GET', PATH);
      const body = {
        ...namespace,
        metadata: { name: OPERATOR_NAMESPACE, resourceVersion: namespace.metadata?.resourceVersion },
      };
      return at.kube.ask('PUT', `${PATH}?dryRun=All`, { as, body });
    },
    refused: /the token base only grows: 0 is less than \d+/,
  },
  {
    name: 'an administrator writes no number',
    as: 'admin',
    send: setting(() => '1e9'),
    refused: /annotation kilit\.dev\/token-base must be a decimal integer below 10\^16, got "1e9"/,
  },
  {
    name: 'an administrator writes too great a number',
    as: 'admin',
    send: setting(() => '10000000000000000'),
    refused: /must be a decimal integer below 10\^16/,
  },
  {
    name: 'an administrator raises it by a slip of the finger',
    as: 'admin',
    send: setting(() => String(base + 100_000_000_000_001n)),
    refused: /which cannot be taken back; one change may add at most 10\^14/,
  },
  {
    name: 'an administrator deletes the Namespace',
    as: 'admin',
    send: (at, as) => at.kube.ask('DELETE', `${PATH}?dryRun=All`, { as }),
    refused:
      /Namespace kilit-system has the token base \d+: without it tokens of the past could come again.*uninstall the chart first/,
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

  test('leaves every other change of the Namespace alone', async () => {
    const body = { metadata: { labels: { team: 'platform' }, annotations: { note: 'x' } } };
    expect((await world.kube.ask('PATCH', `${PATH}?dryRun=All`, { body })).status).toBe(200);
  });

  test('is added to each token', async () => {
    const { operator } = world.who;
    await world.kube.must('POST', leasePath(world), { as: operator, body: aLease('based') });
    const withBase = replacing('kilit.based', (lease) => granted(lease, world.sibling, base));
    const without = replacing('kilit.based', (lease) => granted(lease, world.sibling, 0n));
    expect(await outcome(world, { name: 'with', as: 'operator', send: withBase })).toBe('allowed');
    expect(await outcome(world, { name: 'without', as: 'operator', send: without })).toMatch(
      /the fencing token must be \d+ for this grant/,
    );
  });
});
