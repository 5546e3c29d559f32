import { describe, expect, test } from 'vitest';
import { one, renderObjects } from './rendered.ts';

const POLICIES = [
  'MutatingAdmissionPolicy/kilit-fenced-lease-mint',
  'MutatingAdmissionPolicyBinding/kilit-fenced-lease-mint',
  'ValidatingAdmissionPolicy/kilit-fenced-lease',
  'ValidatingAdmissionPolicyBinding/kilit-fenced-lease',
];

const named = (objects: Awaited<ReturnType<typeof renderObjects>>) =>
  objects.map(({ kind, metadata }) => `${kind}/${metadata.name}`);

interface Policy {
  readonly matchConstraints: { readonly resourceRules: unknown; readonly objectSelector: unknown };
  readonly variables: readonly { readonly name: string; readonly expression: string }[];
  readonly paramRef: unknown;
}

const specOf = async (kind: string, name: string, namespace = 'kilit-system') =>
  one(await renderObjects({ set: ['fencedLeases.enabled=true'], namespace }), kind, name).spec as Policy;

describe('fencedLeases', () => {
  test('is off by default, and then nothing of it is installed', async () => {
    const byDefault = await renderObjects();
    expect(JSON.stringify(byDefault)).not.toContain('kilit.dev/fenced');
  });

  test('adds the policy that mints, its twin and their bindings, and changes nothing else', async () => {
    const off = await renderObjects();
    const on = await renderObjects({ set: ['image.tag=dev', 'fencedLeases.enabled=true'] });
    const added = on.filter((object) => POLICIES.includes(`${object.kind}/${object.metadata.name}`));
    expect(named(added).toSorted()).toEqual(POLICIES);
    expect(on.filter((object) => !added.includes(object))).toEqual(off);
  });

  test.each(['yes', '1'])('does not take %s for true', async (value) => {
    await expect(renderObjects({ set: [`fencedLeases.enabled=${value}`] })).rejects.toThrow(/enabled/);
  });

  test('the twin reckons as the minting policy does, word by word', async () => {
    const mint = await specOf('MutatingAdmissionPolicy', 'kilit-fenced-lease-mint');
    const twin = await specOf('ValidatingAdmissionPolicy', 'kilit-fenced-lease');
    expect(twin.variables.slice(0, mint.variables.length)).toEqual(mint.variables);
    expect(twin.matchConstraints.resourceRules).toEqual(mint.matchConstraints.resourceRules);
  });

  test('neither looks at a Lease without the label: a missing parameter must not stop other Leases', async () => {
    const mint = await specOf('MutatingAdmissionPolicy', 'kilit-fenced-lease-mint');
    const twin = await specOf('ValidatingAdmissionPolicy', 'kilit-fenced-lease');
    expect(mint.matchConstraints.objectSelector).toEqual({ matchLabels: { 'kilit.dev/fenced': 'true' } });
    expect(twin.matchConstraints.objectSelector).toEqual({
      matchExpressions: [{ key: 'kilit.dev/fenced', operator: 'Exists' }],
    });
  });

  test.each([
    'MutatingAdmissionPolicyBinding/kilit-fenced-lease-mint',
    'ValidatingAdmissionPolicyBinding/kilit-fenced-lease',
  ])('the base of %s is that of the namespace of the operator', async (binding) => {
    const [kind = '', name = ''] = binding.split('/');
    const { paramRef } = await specOf(kind, name, 'platform');
    expect(paramRef).toEqual({ name: 'platform', parameterNotFoundAction: 'Deny' });
  });
});
