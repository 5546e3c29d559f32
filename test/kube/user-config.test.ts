import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { loadUserConfig } from '../../src/kube/user-config.ts';

const dir = mkdtempSync(join(tmpdir(), 'kilit-config-'));
afterAll(() => rmSync(dir, { recursive: true, force: true }));

interface Context {
  readonly name: string;
  readonly namespace?: string;
}

/** A kubeconfig whose contexts each have a cluster of their name. */
function file(path: string, contexts: readonly Context[], current?: string): string {
  const whole = join(dir, path);
  const config = {
    clusters: contexts.map(({ name }) => ({ name, cluster: { server: `https://${name}.example` } })),
    users: contexts.map(({ name }) => ({ name, user: { token: name } })),
    contexts: contexts.map(({ name, namespace }) => ({ name, context: { cluster: name, user: name, namespace } })),
    ...(current !== undefined && { 'current-context': current }),
  };
  writeFileSync(whole, JSON.stringify(config));
  return whole;
}

const one = file('one', [{ name: 'a', namespace: 'shop' }, { name: 'b' }], 'a');
const two = file('two', [{ name: 'c' }], 'c');
const none = file('none', [{ name: 'd' }]);
mkdirSync(join(dir, 'home/.kube'), { recursive: true });
file('home/.kube/config', [{ name: 'home' }], 'home');

const load = (env: Readonly<Record<string, string>>, over: { kubeconfig?: string; context?: string } = {}) => {
  const { server, context, namespace } = loadUserConfig({
    kubeconfig: over.kubeconfig,
    context: over.context,
    env: { HOME: '/nonexistent', ...env },
  });
  return [context, server, namespace];
};

describe("a person's cluster is that of", () => {
  test.each<[string, Readonly<Record<string, string>>, { kubeconfig?: string; context?: string }, readonly unknown[]]>([
    [
      '--kubeconfig, whatever the environment says',
      { KUBECONFIG: two },
      { kubeconfig: one },
      ['a', 'https://a.example', 'shop'],
    ],
    ['--context', {}, { kubeconfig: one, context: 'b' }, ['b', 'https://b.example', undefined]],
    ['$KUBECONFIG', { KUBECONFIG: two, HOME: join(dir, 'home') }, {}, ['c', 'https://c.example', undefined]],
    [
      'the first file of $KUBECONFIG that has a current context',
      { KUBECONFIG: `${none}:${one}:${two}` },
      {},
      ['a', 'https://a.example', 'shop'],
    ],
    [
      'any file of $KUBECONFIG, by --context',
      { KUBECONFIG: `${one}:${two}` },
      { context: 'c' },
      ['c', 'https://c.example', undefined],
    ],
    [
      'those files of $KUBECONFIG that are there',
      { KUBECONFIG: `/nowhere:${two}` },
      {},
      ['c', 'https://c.example', undefined],
    ],
    ['the home folder', { HOME: join(dir, 'home') }, {}, ['home', 'https://home.example', undefined]],
    [
      'the home folder, when $KUBECONFIG is empty',
      { HOME: join(dir, 'home'), KUBECONFIG: '' },
      {},
      ['home', 'https://home.example', undefined],
    ],
  ])('%s', (_, env, over, want) => {
    expect(load(env, over)).toEqual(want);
  });

  test('nobody when no context is chosen', () => {
    expect(() => load({ KUBECONFIG: none })).toThrow(
      'The kubeconfig has no current context. Choose one: --context NAME',
    );
  });
});
