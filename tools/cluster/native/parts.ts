/** What a native cluster is made of, from its record: the same for the `up` that makes it and for who opens it later. */
import { join } from 'node:path';
import { ensureBinaries } from '../binaries/build.ts';
import { etcd, helm, kubernetes } from '../binaries/go-modules.ts';
import { findCommand, missingCommand } from '../exec.ts';
import { clusterDir } from '../paths.ts';
import type { OnProgress } from '../types.ts';
import { controlPlane } from './control-plane.ts';
import { clusterLayout, type Layout, type NodeLayout, nodeLayout } from './layout.ts';
import { type NodePrograms, nodePrograms } from './node-programs.ts';
import type { Program } from './program.ts';
import type { ClusterRecord } from './state.ts';

export interface NativeParts {
  readonly record: ClusterRecord;
  readonly layout: Layout;
  readonly binaries: Readonly<Record<'kubectl' | 'helm', string>>;
  readonly controlPlane: readonly Program[];
  readonly nodes: readonly { readonly layout: NodeLayout; readonly programs: NodePrograms }[];
  /** Of control plane and nodes, in the order of their start. */
  readonly programs: readonly Program[];
}

export type Binaries = Readonly<Record<string, string>>;

/** Builds what the cache lacks. */
export async function ensureAllBinaries(kubernetesVersion: string, onProgress: OnProgress): Promise<Binaries> {
  return {
    ...(await ensureBinaries(kubernetes(kubernetesVersion), onProgress)),
    ...(await ensureBinaries(etcd, onProgress)),
    ...(await ensureBinaries(helm, onProgress)),
    containerd: containerdPath(),
  };
}

function containerdPath(): string {
  const path = findCommand('containerd');
  if (path === undefined) throw new Error(missingCommand('containerd'));
  return path;
}

export function nativeParts(record: ClusterRecord, binaries: Binaries): NativeParts {
  const layout = clusterLayout({ ...record, dir: clusterDir(record.name) });
  const path = (name: string): string => binaries[name] ?? join('/nonexistent', name);
  const plane = controlPlane(
    layout,
    {
      etcd: path('etcd'),
      apiServer: path('kube-apiserver'),
      controllerManager: path('kube-controller-manager'),
      scheduler: path('kube-scheduler'),
    },
    { fsync: record.fsync },
  );
  const nodes = Array.from({ length: record.nodes }, (_, index) => {
    const node = nodeLayout(layout, index + 1);
    const paths = { containerd: path('containerd'), kubelet: path('kubelet'), kubeProxy: path('kube-proxy') };
    return { layout: node, programs: nodePrograms(layout, node, paths) };
  });
  return {
    record,
    layout,
    binaries: { kubectl: path('kubectl'), helm: path('helm') },
    controlPlane: plane,
    nodes,
    programs: [
      ...plane,
      ...nodes.flatMap(({ programs }) => [programs.containerd, programs.kubelet, programs.kubeProxy]),
    ],
  };
}
