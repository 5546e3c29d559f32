import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { succeeds } from '../exec.ts';
import { ensureNodeCertificate } from './certificates.ts';
import { ensureCgroup } from './cgroups.ts';
import { cniConfig, containerdConfig, kubeletConfig } from './config.ts';
import { type CommandLine, containerdCommand, inNetns, kubeletCommand, kubeProxyCommand } from './flags.ts';
import type { Layout, NodeLayout } from './layout.ts';
import { ensureNodeNetwork } from './network.ts';
import { Program } from './program.ts';

export interface NodeBinaries {
  readonly containerd: string;
  readonly kubelet: string;
  readonly kubeProxy: string;
}

export interface NodePrograms {
  readonly containerd: Program;
  readonly kubelet: Program;
  readonly kubeProxy: Program;
}

export function nodePrograms(cluster: Layout, node: NodeLayout, binaries: NodeBinaries): NodePrograms {
  const program = (name: string, command: CommandLine, isReady?: () => Promise<boolean>): Program =>
    new Program({
      cluster,
      name: `${name}-${node.name}`,
      command,
      launcher: inNetns(node, command),
      ...(isReady === undefined ? {} : { isReady }),
    });
  return {
    containerd: program('containerd', containerdCommand(binaries.containerd, node), () => containerdAnswers(node)),
    kubelet: program('kubelet', kubeletCommand(binaries.kubelet, node)),
    kubeProxy: program('kube-proxy', kubeProxyCommand(binaries.kubeProxy, cluster, node)),
  };
}

/** The CRI plugin, which the kubelet needs, is loaded last; `ctr version` alone answers before it. */
const containerdAnswers = (node: NodeLayout): Promise<boolean> =>
  succeeds('ctr', ['-a', node.containerdSocket, '-n', 'k8s.io', 'containers', 'ls', '-q'], { timeoutSeconds: 5 });

/** Everything that must be there before the node's programs start; repeating it changes nothing. */
export async function prepareNode(cluster: Layout, node: NodeLayout, others: readonly NodeLayout[]): Promise<void> {
  await Promise.all(['cni', 'kubelet', 'pod-logs'].map((name) => mkdir(join(node.dir, name), { recursive: true })));
  await ensureNodeNetwork(cluster, node, others);
  await ensureCgroup(node.cgroup);
  await ensureNodeCertificate(cluster, node);
  await writeFile(join(node.dir, 'cni', '10-kilit.conflist'), cniConfig(node));
  await writeFile(join(node.dir, 'containerd.toml'), containerdConfig(node));
  await writeFile(join(node.dir, 'kubelet.yaml'), kubeletConfig(cluster, node));
}
