import { ApiError } from '../kube/errors.ts';
import { attempt } from './attempt.ts';
import { type Cluster, get, list } from './connect.ts';
import { Exit, Failure } from './failure.ts';
import { type Input, type Option, valueOf } from './options.ts';

export const OPERATOR_NAMESPACE_OPTION: Option = {
  name: 'operator-namespace',
  value: 'NS',
  summary: 'where the operator runs; default: found by the policies or the labels of the chart',
};

/** Labels that the chart puts on the operator's Deployment. */
export const OPERATOR_LABELS = 'app.kubernetes.io/part-of=kilit,app.kubernetes.io/component=operator';

interface Binding {
  readonly spec?: { readonly paramRef?: { readonly name?: string } };
}

/**
 * The Namespace that carries the token base: the parameter of the policy `kilit-lease`, since that is what grants are
 * checked by; without the policy, where a Deployment with the chart's labels is.
 *
 * @throws Failure when neither can be found.
 */
export async function operatorNamespace(cluster: Cluster, input: Input): Promise<string> {
  const given = valueOf(input, 'operator-namespace');
  if (given !== undefined) return given;
  const binding = await attempt(get<Binding>(cluster, 'validatingadmissionpolicybindings', 'kilit-lease'));
  const parameter = binding.ok ? binding.value.spec?.paramRef?.name : undefined;
  if (parameter !== undefined) return parameter;
  const found = await deployments(cluster);
  const [namespace, ...others] = [...new Set(found)];
  if (namespace !== undefined && others.length === 0) return namespace;
  const why =
    namespace === undefined
      ? 'The operator was not found: there is no policy kilit-lease and no Deployment with the labels of the chart, or they cannot be read with these rights.'
      : `Operators are in several namespaces: ${found.join(', ')}.`;
  throw new Failure(`${why} Give --operator-namespace NS.`, { exit: Exit.usage });
}

async function deployments(cluster: Cluster): Promise<readonly string[]> {
  try {
    const items = await list<{ readonly metadata: { readonly namespace: string } }>(cluster, 'deployments', {
      query: { labelSelector: OPERATOR_LABELS },
    });
    return items.map(({ metadata }) => metadata.namespace);
  } catch (err) {
    if (err instanceof ApiError && err.status === 403) return [];
    throw err;
  }
}
