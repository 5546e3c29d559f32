import type { KubeClient, KubeRequest } from '../kube/client.ts';
import { collectionPath, objectPath } from '../kube/paths.ts';
import { explain } from './explain.ts';
import { Exit, Failure } from './failure.ts';
import type { Io } from './io.ts';
import { type Input, type Option, valueOf } from './options.ts';

/** Of every command that talks to a cluster. */
export const CLUSTER_OPTIONS: readonly Option[] = [
  { name: 'kubeconfig', value: 'FILE', summary: 'credentials; default $KUBECONFIG, else ~/.kube/config' },
  { name: 'context', value: 'NAME', summary: 'context of the kubeconfig' },
];
export const NAMESPACE_OPTION: Option = {
  name: 'namespace',
  short: 'n',
  value: 'NS',
  summary: 'namespace; default that of the context',
};

/** The chosen cluster as commands see it. */
export interface Cluster {
  /** `-n`, else the context's, else `default`. */
  readonly namespace: string;
  readonly server: string;
  request<Answer>(request: KubeRequest): Promise<Answer>;
}

/** Runs `work` with the cluster that was chosen; whatever goes wrong on the way is told in a person's words. */
export async function withCluster(input: Input, io: Io, work: (cluster: Cluster) => Promise<Exit>): Promise<Exit> {
  const { server, context, namespace, client } = await open(input, io);
  try {
    return await work({
      namespace: valueOf(input, 'namespace') ?? namespace ?? 'default',
      server,
      request: (request) => client.request(request),
    });
  } catch (err) {
    const told = explain(err, { server, context });
    if (told === undefined) throw err;
    throw new Failure(told, { cause: err });
  } finally {
    client.close();
  }
}

/** Loaded here and not at the top: client-node takes half a second, which `guard postgres sql` need not wait. */
async function open(input: Input, io: Io) {
  const [{ createKubeClient }, { loadUserConfig }] = await Promise.all([
    import('../kube/client.ts'),
    import('../kube/user-config.ts'),
  ]);
  try {
    const choice = { kubeconfig: valueOf(input, 'kubeconfig'), context: valueOf(input, 'context'), env: io.env };
    const { config, server, context, namespace } = loadUserConfig(choice);
    const client: KubeClient = createKubeClient(config);
    return { server, context, namespace, client };
  } catch (err) {
    throw new Failure(err instanceof Error ? err.message : String(err), { exit: Exit.usage, cause: err });
  }
}

/** A whole collection may be large. */
const LIST_TIMEOUT_MS = 60_000;

export async function list<Item>(
  cluster: Cluster,
  resource: Parameters<typeof collectionPath>[0],
  {
    namespace,
    query = {},
  }: { readonly namespace?: string | undefined; readonly query?: Readonly<Record<string, string>> } = {},
): Promise<readonly Item[]> {
  const search = new URLSearchParams(query).toString();
  const path = collectionPath(resource, namespace) + (search === '' ? '' : `?${search}`);
  const { items } = await cluster.request<{ readonly items: readonly Item[] }>({
    verb: 'GET',
    path,
    timeoutMs: LIST_TIMEOUT_MS,
  });
  return items;
}

export const get = <Item>(
  cluster: Cluster,
  resource: Parameters<typeof objectPath>[0],
  name: string,
  namespace?: string,
): Promise<Item> => cluster.request<Item>({ verb: 'GET', path: objectPath(resource, namespace, name) });
