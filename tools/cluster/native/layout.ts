/** Everything in which two clusters on one machine differ, derived from the cluster's index. Pure. */
import { join } from 'node:path';

export interface NodeLayout {
  readonly name: string;
  /** Network namespace of the node: kubelet, containerd, kube-proxy and all Pods live in or under it. */
  readonly netns: string;
  /** The node's link on the machine's side; down = the node is off the network. */
  readonly hostLink: string;
  readonly address: string;
  readonly podCidr: string;
  readonly cgroup: string;
  readonly dir: string;
  readonly containerdSocket: string;
}

export interface Layout {
  readonly name: string;
  readonly index: number;
  readonly dir: string;
  readonly bridge: string;
  /** The API server listens here and nowhere else. */
  readonly bridgeAddress: string;
  readonly nodeCidr: string;
  readonly podCidr: string;
  readonly serviceCidr: string;
  readonly apiServiceAddress: string;
  readonly dnsServiceAddress: string;
  readonly apiServerPort: number;
  readonly etcdPort: number;
  readonly etcdPeerPort: number;
  readonly controllerManagerPort: number;
  readonly schedulerPort: number;
  readonly kubeconfig: string;
  readonly pki: string;
  readonly logs: string;
  readonly processes: string;
}

const FIRST_NODE_HOST = 10;

export function clusterLayout(cluster: {
  readonly name: string;
  readonly index: number;
  readonly dir: string;
}): Layout {
  const { name, index, dir } = cluster;
  const portBase = 16_000 + 100 * index;
  return {
    name,
    index,
    dir,
    bridge: `kilit${index}`,
    bridgeAddress: `10.87.${index}.1`,
    nodeCidr: `10.87.${index}.0/24`,
    podCidr: `10.${100 + index}.0.0/16`,
    serviceCidr: `10.96.${16 * index}.0/20`,
    apiServiceAddress: `10.96.${16 * index}.1`,
    dnsServiceAddress: `10.96.${16 * index}.10`,
    apiServerPort: 6443,
    etcdPort: portBase + 79,
    etcdPeerPort: portBase + 80,
    controllerManagerPort: portBase + 57,
    schedulerPort: portBase + 59,
    kubeconfig: join(dir, 'admin.kubeconfig'),
    pki: join(dir, 'pki'),
    logs: join(dir, 'logs'),
    processes: join(dir, 'processes'),
  };
}

/** `number` counts from 1. */
export function nodeLayout(cluster: Layout, number: number): NodeLayout {
  const name = `node${number}`;
  const dir = join(cluster.dir, name);
  return {
    name,
    netns: `kilit-${cluster.name}-${name}`,
    hostLink: `kilit${cluster.index}n${number}`,
    address: `10.87.${cluster.index}.${FIRST_NODE_HOST + number}`,
    podCidr: `10.${100 + cluster.index}.${number}.0/24`,
    cgroup: `kilit-${cluster.name}-${name}`,
    dir,
    containerdSocket: join(dir, 'containerd.sock'),
  };
}

/** The lowest index that no recorded cluster has. */
export function freeIndex(taken: readonly number[], limit: number): number {
  for (let index = 0; index < limit; index += 1) if (!taken.includes(index)) return index;
  throw new Error(`${limit} clusters exist on this machine. End one: npm run cluster -- down --name NAME`);
}
