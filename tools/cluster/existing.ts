/** A cluster that somebody else runs. Only what kubectl and helm can do; it is never created or ended here. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findCommand, missingCommand } from './exec.ts';
import { kubeClients } from './kube-clients.ts';
import { step } from './progress.ts';
import { type Cluster, type ClusterNode, NotSupported, type OnProgress, type ProviderName } from './types.ts';

interface ExistingOptions {
  readonly name: string;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly onProgress: OnProgress;
}

export async function openExisting(options: ExistingOptions): Promise<Cluster> {
  if (options.kubeconfig === undefined) {
    throw new Error(
      'Name the kubeconfig: --kubeconfig FILE or KILIT_KUBECONFIG. The default kubeconfig is never used by accident.',
    );
  }
  const at = { kubeconfig: options.kubeconfig, ...(options.context === undefined ? {} : { context: options.context }) };
  const cluster = clusterOfKubeconfig('existing', options.name, at);
  const nodes = await step(options.onProgress, `connect by ${options.kubeconfig}`, () => readNodes(cluster));
  return { ...cluster, ...nodes, down: async () => options.onProgress('note   an existing cluster is left as it is') };
}

/** Asks the API server for its version and the nodes' names. */
export async function readNodes(cluster: Cluster): Promise<Pick<Cluster, 'kubernetesVersion' | 'nodes' | 'node'>> {
  const version = JSON.parse(await cluster.kubectl(['get', '--raw', '/version'])) as { readonly gitVersion: string };
  const names = (await cluster.kubectl(['get', 'nodes', '-o', 'name'])).split('\n').filter((line) => line !== '');
  const nodes = names.map((name) => distantNode(cluster.provider, name.replace('node/', '')));
  const node = (name: string): ClusterNode => {
    const found = nodes.find((each) => each.name === name);
    if (found === undefined)
      throw new Error(`No node '${name}'; there are: ${nodes.map((each) => each.name).join(', ')}`);
    return found;
  };
  return { kubernetesVersion: version.gitVersion.replace(/^v/, ''), nodes, node };
}

/** kubectl and helm come from the PATH. Everything that needs the machine is refused. */
export function clusterOfKubeconfig(
  provider: ProviderName,
  name: string,
  at: { readonly kubeconfig: string; readonly context?: string },
): Cluster {
  const [kubectl, helm] = [findCommand('kubectl'), findCommand('helm')];
  if (kubectl === undefined || helm === undefined)
    throw new Error(missingCommand(kubectl === undefined ? 'kubectl' : 'helm'));
  const clients = kubeClients({ kubectl, helm, ...at });
  const refuse = (what: string) => (): Promise<never> => Promise.reject(new NotSupported(what, provider));
  return {
    name,
    provider,
    kubeconfigPath: at.kubeconfig,
    kubernetesVersion: '',
    kubectlPath: kubectl,
    helmPath: helm,
    ...clients,
    nodes: [],
    node: (node) => {
      throw new Error(`No node '${node}'`);
    },
    components: [],
    component: (component) => {
      throw new NotSupported(`Stopping '${component}'`, provider);
    },
    cutEtcd: refuse('Cutting etcd off'),
    healEtcd: refuse('Healing etcd'),
    divertApiServer: refuse('Diverting the API server'),
    restoreApiServer: refuse('Restoring the API server'),
    loadImage: () => Promise.reject(new NotSupported('Loading an image (push it to a registry instead)', provider)),
    collectLogs: async (dir) => {
      await mkdir(dir, { recursive: true });
      await writeFile(
        join(dir, 'objects.yaml'),
        await clients.kubectl(['get', 'nodes,pods,events,leases', '-A', '-o', 'yaml']),
      );
    },
    down: () => Promise.reject(new NotSupported('Ending the cluster', provider)),
  };
}

function distantNode(provider: ProviderName, name: string): ClusterNode {
  const refuse = (what: string) => (): Promise<never> =>
    Promise.reject(new NotSupported(`${what} on node '${name}'`, provider));
  return {
    name,
    stopKubelet: refuse('Stopping the kubelet'),
    startKubelet: refuse('Starting the kubelet'),
    restartKubelet: refuse('Restarting the kubelet'),
    ctr: refuse("Running containerd's client"),
    pidsOfPod: refuse('Finding the processes of a Pod'),
    killContainer: refuse('Killing a container'),
    removeContainerRecord: refuse('Removing a container record'),
    cutPod: refuse('Cutting a Pod off'),
    healPod: refuse('Healing a Pod'),
    cutNetwork: refuse('Cutting the network'),
    healNetwork: refuse('Healing the network'),
  };
}
