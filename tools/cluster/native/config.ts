/** The configuration files of a node and the kubeconfigs. Pure. */
import { join } from 'node:path';
import { stringify } from 'yaml';
import { PAUSE_IMAGE } from '../constants.ts';
import type { Layout, NodeLayout } from './layout.ts';

/**
 * `restrict_oom_score_adj`: without CAP_SYS_RESOURCE every sandbox fails with "can't get final child's PID from pipe".
 * `netns_mounts_under_state_dir`: all mounts of a node are under its folder, so that `down` finds them.
 */
export function containerdConfig(node: NodeLayout): string {
  const path = (name: string): string => JSON.stringify(join(node.dir, name));
  return `version = 2
root = ${path('containerd-root')}
state = ${path('containerd-state')}
disabled_plugins = ["io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs", "io.containerd.snapshotter.v1.aufs", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
  address = ${JSON.stringify(node.containerdSocket)}
[plugins."io.containerd.internal.v1.opt"]
  path = ${path('containerd-opt')}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = ${JSON.stringify(PAUSE_IMAGE)}
  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = ${path('cni')}
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      Root = ${path('runc')}
`;
}

/**
 * `ptp` gives every Pod its own link and route. With `bridge`, two Pods of one node answer each other past the node's
 * address translation, so that a Service with a backend on the same node needs the br_netfilter module.
 */
export function cniConfig(node: NodeLayout): string {
  return JSON.stringify({
    cniVersion: '1.0.0',
    name: node.name,
    plugins: [
      {
        type: 'ptp',
        ipMasq: true,
        ipam: {
          type: 'host-local',
          dataDir: join(node.dir, 'ipam'),
          ranges: [[{ subnet: node.podCidr }]],
          routes: [{ dst: '0.0.0.0/0' }],
        },
      },
      { type: 'portmap', capabilities: { portMappings: true } },
    ],
  });
}

export function kubeletConfig(cluster: Layout, node: NodeLayout): string {
  return stringify({
    apiVersion: 'kubelet.config.k8s.io/v1beta1',
    kind: 'KubeletConfiguration',
    authentication: {
      anonymous: { enabled: false },
      webhook: { enabled: true },
      x509: { clientCAFile: join(cluster.pki, 'ca.crt') },
    },
    authorization: { mode: 'Webhook' },
    tlsCertFile: join(cluster.pki, `${node.name}.crt`),
    tlsPrivateKeyFile: join(cluster.pki, `${node.name}.key`),
    cgroupDriver: 'cgroupfs',
    cgroupRoot: `/${node.cgroup}`,
    failCgroupV1: false,
    failSwapOn: false,
    containerRuntimeEndpoint: `unix://${node.containerdSocket}`,
    clusterDNS: [cluster.dnsServiceAddress],
    clusterDomain: 'cluster.local',
    evictionHard: {},
    imageGCHighThresholdPercent: 100,
    imageGCLowThresholdPercent: 99,
    localStorageCapacityIsolation: false,
    podLogsDir: join(node.dir, 'pod-logs'),
    volumePluginDir: join(node.dir, 'volume-plugins'),
  });
}

export interface KubeconfigParts {
  readonly cluster: string;
  readonly server: string;
  readonly ca: Buffer;
  readonly certificate: Buffer;
  readonly key: Buffer;
}

export function kubeconfig(parts: KubeconfigParts): string {
  const name = `kilit-${parts.cluster}`;
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': name,
    clusters: [{ name, cluster: { server: parts.server, 'certificate-authority-data': parts.ca.toString('base64') } }],
    users: [
      {
        name,
        user: {
          'client-certificate-data': parts.certificate.toString('base64'),
          'client-key-data': parts.key.toString('base64'),
        },
      },
    ],
    contexts: [{ name, context: { cluster: name, user: name } }],
  });
}
