import { type Cluster, list } from '../connect.ts';
import type { Policies, PolicyBinding } from './facts.ts';

interface Named {
  readonly metadata: { readonly name: string };
}

interface RawBinding extends Named {
  readonly spec?: {
    readonly policyName?: string;
    readonly validationActions?: readonly string[];
    readonly paramRef?: { readonly name?: string };
  };
}

/** All of the cluster, since a binding may have any name. */
export async function readPolicies(cluster: Cluster): Promise<Policies> {
  const [mutating, validating, mutatingBindings, validatingBindings] = await Promise.all([
    list<Named>(cluster, 'mutatingadmissionpolicies'),
    list<Named>(cluster, 'validatingadmissionpolicies'),
    list<RawBinding>(cluster, 'mutatingadmissionpolicybindings'),
    list<RawBinding>(cluster, 'validatingadmissionpolicybindings'),
  ]);
  const names = (all: readonly Named[]) => all.map(({ metadata }) => metadata.name);
  return {
    mutating: names(mutating),
    validating: names(validating),
    bindings: [...mutatingBindings, ...validatingBindings].map(toBinding),
  };
}

const toBinding = ({ metadata, spec }: RawBinding): PolicyBinding => ({
  name: metadata.name,
  policy: spec?.policyName ?? '',
  actions: spec?.validationActions ?? [],
  parameter: spec?.paramRef?.name,
});
