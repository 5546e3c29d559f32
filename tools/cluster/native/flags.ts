/** The command lines of the control plane and of a node's programs. Pure. */
import { join } from 'node:path';
import type { Layout, NodeLayout } from './layout.ts';

export type CommandLine = readonly [program: string, ...args: string[]];

export function etcdCommand(binary: string, cluster: Layout, options: { readonly fsync: boolean }): CommandLine {
  const client = `http://127.0.0.1:${cluster.etcdPort}`;
  const peer = `http://127.0.0.1:${cluster.etcdPeerPort}`;
  return [
    binary,
    '--name=default',
    `--data-dir=${join(cluster.dir, 'etcd')}`,
    `--listen-client-urls=${client}`,
    `--advertise-client-urls=${client}`,
    `--listen-peer-urls=${peer}`,
    `--initial-advertise-peer-urls=${peer}`,
    `--initial-cluster=default=${peer}`,
    ...(options.fsync ? [] : ['--unsafe-no-fsync']),
  ];
}

export function apiServerCommand(binary: string, cluster: Layout): CommandLine {
  const pki = (file: string): string => join(cluster.pki, file);
  return [
    binary,
    `--etcd-servers=http://127.0.0.1:${cluster.etcdPort}`,
    `--bind-address=${cluster.bridgeAddress}`,
    `--advertise-address=${cluster.bridgeAddress}`,
    `--secure-port=${cluster.apiServerPort}`,
    `--service-cluster-ip-range=${cluster.serviceCidr}`,
    `--tls-cert-file=${pki('apiserver.crt')}`,
    `--tls-private-key-file=${pki('apiserver.key')}`,
    `--client-ca-file=${pki('ca.crt')}`,
    `--service-account-key-file=${pki('sa.pub')}`,
    `--service-account-signing-key-file=${pki('sa.key')}`,
    '--service-account-issuer=https://kubernetes.default.svc',
    '--authorization-mode=Node,RBAC',
    '--enable-admission-plugins=NodeRestriction',
    '--allow-privileged=true',
    `--kubelet-certificate-authority=${pki('ca.crt')}`,
    `--kubelet-client-certificate=${pki('admin.crt')}`,
    `--kubelet-client-key=${pki('admin.key')}`,
    '--kubelet-preferred-address-types=InternalIP',
  ];
}

export function controllerManagerCommand(binary: string, cluster: Layout): CommandLine {
  const kubeconfig = join(cluster.dir, 'kube-controller-manager.kubeconfig');
  const pki = (file: string): string => join(cluster.pki, file);
  return [
    binary,
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${cluster.controllerManagerPort}`,
    `--service-account-private-key-file=${pki('sa.key')}`,
    `--root-ca-file=${pki('ca.crt')}`,
    '--use-service-account-credentials',
    `--cluster-signing-cert-file=${pki('ca.crt')}`,
    `--cluster-signing-key-file=${pki('ca.key')}`,
    '--leader-elect=false',
  ];
}

export function schedulerCommand(binary: string, cluster: Layout): CommandLine {
  const kubeconfig = join(cluster.dir, 'kube-scheduler.kubeconfig');
  return [
    binary,
    `--kubeconfig=${kubeconfig}`,
    `--authentication-kubeconfig=${kubeconfig}`,
    `--authorization-kubeconfig=${kubeconfig}`,
    '--bind-address=127.0.0.1',
    `--secure-port=${cluster.schedulerPort}`,
    '--leader-elect=false',
  ];
}

export function containerdCommand(binary: string, node: NodeLayout): CommandLine {
  return [binary, `--config=${join(node.dir, 'containerd.toml')}`];
}

export function kubeletCommand(binary: string, node: NodeLayout): CommandLine {
  return [
    binary,
    `--config=${join(node.dir, 'kubelet.yaml')}`,
    `--kubeconfig=${join(node.dir, 'kubelet.kubeconfig')}`,
    `--hostname-override=${node.name}`,
    `--node-ip=${node.address}`,
    `--root-dir=${join(node.dir, 'kubelet')}`,
    `--cert-dir=${join(node.dir, 'kubelet', 'pki')}`,
  ];
}

/** Conntrack limits belong to the machine, not to a network namespace: kube-proxy must leave them alone. */
export function kubeProxyCommand(binary: string, cluster: Layout, node: NodeLayout): CommandLine {
  return [
    binary,
    `--kubeconfig=${join(cluster.dir, 'kube-proxy.kubeconfig')}`,
    `--hostname-override=${node.name}`,
    '--proxy-mode=iptables',
    `--cluster-cidr=${cluster.podCidr}`,
    '--conntrack-max-per-core=0',
    '--conntrack-min=0',
    '--conntrack-tcp-timeout-established=0s',
    '--conntrack-tcp-timeout-close-wait=0s',
  ];
}

/** Runs a command in the node's network namespace; the process that remains is the command itself. */
export function inNetns(node: NodeLayout, command: CommandLine): CommandLine {
  return ['nsenter', `--net=/run/netns/${node.netns}`, '--', ...command];
}
