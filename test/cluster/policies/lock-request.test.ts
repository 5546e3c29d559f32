/** Requests of administrators on a lock, `kilit.dev/break` and `kilit.dev/handover`: who may write them, and what. */
import { describe, expect, test } from 'vitest';
import type { Answer, Identity } from '../../support/kube.ts';
import { useWorld } from './attempts.ts';
import { openWorld, until, type World } from './world.ts';

/** `held` has token 4711; `asked` carries a request already; `never` was never granted. */
const at = useWorld(
  () => openWorld('request'),
  async (world) => {
    for (const name of ['held', 'asked', 'never']) {
      const body = { apiVersion: 'kilit.dev/v1alpha1', kind: 'DistributedLock', metadata: { name } };
      await world.kube.must('POST', lockPath(world), { body });
    }
    const status = { holder: { kind: 'Pod', name: 'holder', uid: world.holder.uid }, fencingToken: '4711' };
    for (const name of ['held', 'asked']) {
      await world.kube.must('PATCH', lockPath(world, `${name}/status`), { as: world.who.operator, body: { status } });
    }
    const apiGroup = 'rbac.authorization.k8s.io';
    for (const [index, { name }] of [ADA, DOMAIN].entries()) {
      await world.kube.must('POST', `/apis/${apiGroup}/v1/namespaces/${world.namespace}/rolebindings`, {
        body: {
          metadata: { name: `admin-${index}` },
          roleRef: { apiGroup, kind: 'ClusterRole', name: 'admin' },
          subjects: [{ apiGroup, kind: 'User', name }],
        },
      });
    }
    for (const who of [ADA, DOMAIN]) {
      await until(`the rights of ${who.name}`, async () => {
        const answer = await ask(world, who, 'held', { 'kilit.dev/break': by(who) });
        return answer.status === 200;
      });
    }
    await world.kube.must('PATCH', lockPath(world, 'asked'), {
      as: ADA,
      body: { metadata: { annotations: { 'kilit.dev/break': by(ADA) } } },
    });
  },
);

type User = Extract<Identity, { kind: 'user' }>;
const user = (name: string): User => ({ kind: 'user', name, groups: ['system:authenticated'] });
/** Both have the role `admin` in the namespace, eve only `edit`. */
const ADA = user('ada');
const DOMAIN = user('CORP\\o"brien');
const EVE = user('eve');

const lockPath = (world: World, name = ''): string =>
  `/apis/kilit.dev/v1alpha1/namespaces/${world.namespace}/distributedlocks${name && `/${name}`}`;

const by = ({ name }: User, over: object = {}): string =>
  JSON.stringify({ token: '4711', by: name, reason: 'it hangs', ...over });

const ask = (
  world: World,
  as: Identity,
  lock: string,
  annotations: Readonly<Record<string, string | null>>,
): Promise<Answer> =>
  world.kube.ask('PATCH', `${lockPath(world, lock)}?dryRun=All`, { as, body: { metadata: { annotations } } });

const outcome = (answer: Answer): string => (answer.status === 200 ? 'allowed' : `${answer.body.message}`);

describe.each(['break', 'handover'] as const)('a request to %s', (kind) => {
  const key = `kilit.dev/${kind}`;

  test.each([
    ['an administrator', ADA, by(ADA)],
    ['one whose name JSON must escape', DOMAIN, by(DOMAIN)],
    ['with blanks, as a person writes it', ADA, ' { "token": "4711", "by": "ada", "reason": "x" }\n'],
    ['with a reason of 256 characters', ADA, by(ADA, { reason: 'ü'.repeat(256) })],
    ['with a reason that looks like a signature', ADA, by(ADA, { reason: '"by":"eve"}' })],
    ['with a reason of several lines', ADA, by(ADA, { reason: 'a\nb\t"c" \\' })],
  ])('is let through: %s', async (_, who, text) => {
    expect(outcome(await ask(at.world, who, 'held', { [key]: text }))).toBe('allowed');
  });

  test.each([
    ['of somebody who may only edit', EVE, by(EVE), /"eve" may not change .* of lock held: that needs the verb break/],
    ['in the name of another', ADA, by(EVE), /must be signed by who writes it: "by" must be "ada"/],
    ['signed in the reason', ADA, by(EVE, { reason: '"by":"ada"' }), /must be signed by who writes it/],
    ['in part of the own name', ADA, by(user('ad')), /must be signed by who writes it/],
    ['with the token of an earlier grant', ADA, by(ADA, { token: '4710' }), /must name the token .*, "4711"/],
    ['with part of the token', ADA, by(ADA, { token: '471' }), /must name the token of the present grant, "4711"/],
    ['with a token that is a number', ADA, by(ADA, { token: 4711 }), /must be \{"token":"<decimal>"/],
    ['with leading zeros', ADA, by(ADA, { token: '04711' }), /must be \{"token":"<decimal>"/],
    ['without a reason', ADA, by(ADA, { reason: '' }), /"reason":"<1 to 256 characters>"\}/],
    ['with a reason of 257 characters', ADA, by(ADA, { reason: 'x'.repeat(257) }), /<1 to 256 characters>/],
    ['with something more', ADA, by(ADA, { force: 'yes' }), /, in this order, got \{"token"/],
    ['that is no JSON', ADA, 'now!', /in this order, got now!/],
    ['that is empty', ADA, '', /must be \{"token":"<decimal>"/],
    ['with text after it', ADA, `${by(ADA)}{}`, /must be \{"token":"<decimal>"/],
  ])('is refused: %s', async (_, who, text, message) => {
    const answer = await ask(at.world, who, 'held', { [key]: text });
    expect(outcome(answer)).toMatch(message);
  });

  test('is refused on a lock that was never granted', async () => {
    expect(outcome(await ask(at.world, ADA, 'never', { [key]: by(ADA) }))).toMatch(
      /must name the token of the present grant, but it was never granted/,
    );
  });

  test('is refused on a lock that is made with it', async () => {
    const answer = await at.world.kube.ask('POST', `${lockPath(at.world)}?dryRun=All`, {
      as: ADA,
      body: {
        apiVersion: 'kilit.dev/v1alpha1',
        kind: 'DistributedLock',
        metadata: { name: 'new', annotations: { [key]: by(ADA) } },
      },
    });
    expect(outcome(answer)).toMatch(/lock new is new and nobody holds it; remove annotation/);
  });

  test('is not written by the operator', async () => {
    const answer = await ask(at.world, at.world.who.operator, 'held', { [key]: by(ADA) });
    expect(outcome(answer)).toMatch(/must be signed by who writes it/);
  });
});

describe('a request that stands', () => {
  test('does not disturb who changes something else', async () => {
    expect(outcome(await ask(at.world, EVE, 'asked', { note: 'x' }))).toBe('allowed');
  });

  test.each([
    ['the operator', () => at.world.who.operator],
    ['another administrator', () => DOMAIN],
  ])('is taken off by %s', async (_, who) => {
    expect(outcome(await ask(at.world, who(), 'asked', { 'kilit.dev/break': null }))).toBe('allowed');
  });

  test('is not taken off by somebody who may only edit, nor written over', async () => {
    for (const value of [null, by(EVE)]) {
      expect(outcome(await ask(at.world, EVE, 'asked', { 'kilit.dev/break': value }))).toMatch(
        /"eve" may not change annotation kilit\.dev\/break of lock asked/,
      );
    }
  });

  test('is written over by another administrator in the own name only', async () => {
    expect(outcome(await ask(at.world, DOMAIN, 'asked', { 'kilit.dev/break': by(ADA, { reason: 'y' }) }))).toMatch(
      /must be signed by who writes it/,
    );
    expect(outcome(await ask(at.world, DOMAIN, 'asked', { 'kilit.dev/break': by(DOMAIN) }))).toBe('allowed');
  });
});
