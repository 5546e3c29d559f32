/**
 * A cluster's network on one machine: a bridge, and per node a network namespace with one link to it.
 *
 * Every node has its own addresses, ports and iptables rules, as on a machine of its own. So two clusters, each with
 * its kube-proxies, do not touch each other's rules; a node can be taken off the network by one link; and deleting the
 * namespace deletes all of it.
 */
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { run, succeeds } from '../exec.ts';
import { healAll } from './api-server-network.ts';
import type { Layout, NodeLayout } from './layout.ts';

const ip = (...args: string[]): Promise<unknown> => run('ip', args);
const inNode = (node: NodeLayout, ...command: string[]): Promise<unknown> =>
  run('nsenter', [`--net=/run/netns/${node.netns}`, '--', ...command]);
const hasLink = (name: string): boolean => existsSync(`/sys/class/net/${name}`);

export async function ensureClusterNetwork(cluster: Layout): Promise<void> {
  await writeFile('/proc/sys/net/ipv4/ip_forward', '1');
  await healAll(cluster);
  if (!hasLink(cluster.bridge)) await ip('link', 'add', cluster.bridge, 'type', 'bridge');
  await ip('address', 'replace', `${cluster.bridgeAddress}/24`, 'dev', cluster.bridge);
  await ip('link', 'set', cluster.bridge, 'up');
}

/** `others` are the cluster's other nodes: each learns the way to the other's Pods. */
export async function ensureNodeNetwork(
  cluster: Layout,
  node: NodeLayout,
  others: readonly NodeLayout[],
): Promise<void> {
  await ensureNamespace(node);
  if (!hasLink(node.hostLink)) {
    await ip('link', 'add', node.hostLink, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', node.netns);
  }
  await ip('link', 'set', node.hostLink, 'master', cluster.bridge, 'up');
  await inNode(node, 'ip', 'link', 'set', 'lo', 'up');
  await inNode(node, 'ip', 'address', 'replace', `${node.address}/24`, 'dev', 'eth0');
  await inNode(node, 'ip', 'link', 'set', 'eth0', 'up');
  await inNode(node, 'ip', 'route', 'replace', 'default', 'via', cluster.bridgeAddress);
  await inNode(node, 'sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward');
  await ip('route', 'replace', node.podCidr, 'via', node.address);
  for (const other of others) {
    if (!existsSync(`/run/netns/${other.netns}`)) continue;
    await inNode(node, 'ip', 'route', 'replace', other.podCidr, 'via', other.address);
    await inNode(other, 'ip', 'route', 'replace', node.podCidr, 'via', node.address);
  }
}

/** Services answer on this machine too, through the kube-proxy of the first node. */
export async function ensureServiceRoute(cluster: Layout, first: NodeLayout): Promise<void> {
  await ip('route', 'replace', cluster.serviceCidr, 'via', first.address);
}

async function ensureNamespace(node: NodeLayout): Promise<void> {
  const path = `/run/netns/${node.netns}`;
  const mounted = (await readFile('/proc/self/mountinfo', 'utf8')).includes(` ${path} `);
  if (existsSync(path) && mounted) return;
  await rm(path, { force: true }); // Left by a reboot where /run is kept.
  await ip('netns', 'add', node.netns);
}

export async function setNodeLink(node: NodeLayout, state: 'up' | 'down'): Promise<void> {
  await ip('link', 'set', node.hostLink, state);
}

export async function removeNetwork(cluster: Layout, nodes: readonly NodeLayout[]): Promise<void> {
  for (const node of nodes) {
    await succeeds('ip', ['link', 'delete', node.hostLink]);
    await succeeds('ip', ['netns', 'delete', node.netns]);
    await rm(`/run/netns/${node.netns}`, { force: true }).catch(() => {});
  }
  await succeeds('ip', ['link', 'delete', cluster.bridge]);
  await healAll(cluster);
}

const CHAIN = 'KILIT-CUT';

/** Drops packets between a Pod and the API server, by rules in the Pod's own namespace. `pid` is any of its processes. */
export async function cutFromApiServer(cluster: Layout, pid: number): Promise<void> {
  await healFromApiServer(pid);
  const iptables = (...args: string[]): Promise<unknown> => inPod(pid, 'iptables', '-w', ...args);
  await iptables('-N', CHAIN);
  const peers = [`${cluster.apiServiceAddress}/32`, `${cluster.bridgeAddress}/32`];
  for (const peer of peers) {
    await iptables('-A', CHAIN, '-d', peer, '-j', 'DROP');
    await iptables('-A', CHAIN, '-s', peer, '-j', 'DROP');
  }
  for (const hook of ['OUTPUT', 'INPUT']) await iptables('-I', hook, '-j', CHAIN);
}

export async function healFromApiServer(pid: number): Promise<void> {
  const iptables = (...args: string[]): Promise<boolean> =>
    succeeds('nsenter', ['-t', String(pid), '-n', 'iptables', '-w', ...args]);
  for (const hook of ['OUTPUT', 'INPUT']) await iptables('-D', hook, '-j', CHAIN);
  await iptables('-F', CHAIN);
  await iptables('-X', CHAIN);
}

const inPod = (pid: number, ...command: string[]): Promise<unknown> =>
  run('nsenter', ['-t', String(pid), '-n', ...command]);
