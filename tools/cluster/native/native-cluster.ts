/** A running native cluster as tests see it. */
import { cp, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { PAUSE_IMAGE, TEST_IMAGE } from '../constants.ts';
import { run } from '../exec.ts';
import { buildImage, type ImageArchive, isHarnessImage } from '../images/image.ts';
import { kubeClients } from '../kube-clients.ts';
import { step } from '../progress.ts';
import type { Cluster, ClusterNode, Component, OnProgress } from '../types.ts';
import { cutEtcd, divertApiServer, healEtcd, restoreApiServer } from './api-server-network.ts';
import { archiveOf, loadIntoNode } from './image-store.ts';
import { nativeNode } from './native-node.ts';
import type { NativeParts } from './parts.ts';

export interface NativeClusterOptions {
  readonly parts: NativeParts;
  readonly onProgress: OnProgress;
  readonly down: () => Promise<void>;
}

export function nativeCluster({ parts, onProgress, down }: NativeClusterOptions): Cluster {
  const { layout, record, binaries } = parts;
  const nodes = parts.nodes.map(({ layout: node, programs }) => nativeNode(layout, node, programs));
  const components = new Map(parts.programs.map((program) => [program.name, program]));
  const clients = kubeClients({ kubectl: binaries.kubectl, helm: binaries.helm, kubeconfig: layout.kubeconfig });
  return {
    name: record.name,
    provider: 'native',
    kubeconfigPath: layout.kubeconfig,
    kubernetesVersion: record.kubernetesVersion,
    kubectlPath: binaries.kubectl,
    helmPath: binaries.helm,
    ...clients,
    nodes,
    node: (name) => find(nodes, name),
    components: [...components.keys()],
    component: (name) => {
      const component: Component | undefined = components.get(name);
      if (component === undefined)
        throw new Error(`No component '${name}'; there are: ${[...components.keys()].join(', ')}`);
      return component;
    },
    cutEtcd: () => cutEtcd(layout),
    healEtcd: () => healEtcd(layout),
    divertApiServer: (port) => divertApiServer(layout, port),
    restoreApiServer: () => restoreApiServer(layout),
    loadImage: async (...images) => {
      for (const image of images) await loadIntoAll(parts, image, onProgress);
    },
    collectLogs: (dir) => collectLogs(parts, clients.kubectl, dir),
    down,
  };
}

function find(nodes: readonly ClusterNode[], name: string): ClusterNode {
  const node = nodes.find((each) => each.name === name);
  if (node === undefined) throw new Error(`No node '${name}'; there are: ${nodes.map((each) => each.name).join(', ')}`);
  return node;
}

async function loadIntoAll(parts: NativeParts, image: string, onProgress: OnProgress): Promise<void> {
  const archive: ImageArchive = isHarnessImage(image) ? await buildImage(image, onProgress) : await archiveOf(image);
  await loadArchive(parts, archive, onProgress);
}

async function loadArchive(parts: NativeParts, archive: ImageArchive, onProgress: OnProgress): Promise<void> {
  const names = parts.nodes.map(({ layout }) => layout.name).join(', ');
  await step(onProgress, `load ${archive.name} into ${names}`, () =>
    Promise.all(parts.nodes.map(({ layout }) => loadIntoNode(layout, archive))),
  );
}

/** The images that every cluster has: the sandbox's, and the one for test programs. */
export const INITIAL_IMAGES: readonly string[] = [PAUSE_IMAGE, TEST_IMAGE];

async function collectLogs(parts: NativeParts, kubectl: Cluster['kubectl'], dir: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  await cp(parts.layout.logs, join(dir, 'components'), { recursive: true });
  for (const { layout } of parts.nodes) {
    await run('cp', ['-rL', join(layout.dir, 'pod-logs'), join(dir, `pods-${layout.name}`)]).catch(() => {});
  }
  const kinds = 'nodes,pods,events,leases,deployments,replicasets,statefulsets,jobs,cronjobs,services,configmaps';
  const objects = await kubectl(['get', kinds, '-A', '-o', 'yaml', '--show-managed-fields'], {
    timeoutSeconds: 20,
  }).catch(String);
  await writeFile(join(dir, 'objects.yaml'), objects);
  const crds = await kubectl(['get', 'distributedlocks', '-A', '-o', 'yaml'], { timeoutSeconds: 20 }).catch(String);
  await writeFile(join(dir, 'distributedlocks.yaml'), crds);
}
