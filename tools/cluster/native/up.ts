/** Brings a native cluster up. Every step looks first: what is there stays, what is missing or dead is made. */
import { mkdir } from 'node:fs/promises';
import { ensurePackages } from '../binaries/debian.ts';
import { KUBERNETES_VERSION } from '../constants.ts';
import { run } from '../exec.ts';
import { buildImage } from '../images/image.ts';
import { step, waitFor } from '../progress.ts';
import type { Cluster, OnProgress } from '../types.ts';
import { ensureClusterCertificates } from './certificates.ts';
import { down } from './down.ts';
import { loadIntoNode } from './image-store.ts';
import { INITIAL_IMAGES, nativeCluster } from './native-cluster.ts';
import { ensureClusterNetwork, ensureServiceRoute } from './network.ts';
import { prepareNode } from './node-programs.ts';
import { ensureAllBinaries, type NativeParts, nativeParts } from './parts.ts';
import { bootId } from './proc.ts';
import { allocate, type ClusterRecord, readCluster, withClusterLock, writeCluster } from './state.ts';

export interface NativeOptions {
  readonly name: string;
  readonly nodes: number;
  readonly kubernetesVersion?: string;
  readonly fsync?: boolean;
  readonly onProgress: OnProgress;
}

/** Why this machine cannot run a native cluster, or undefined. */
export function whyNotNative(): string | undefined {
  if (process.platform !== 'linux') return `native clusters need Linux, this is ${process.platform}`;
  if (process.getuid?.() !== 0)
    return 'native clusters need root (kubelet, containerd, network namespaces): run as root or with sudo';
  return undefined;
}

export async function up(options: NativeOptions): Promise<Cluster> {
  const reason = whyNotNative();
  if (reason !== undefined) throw new Error(reason);
  const { onProgress } = options;
  await ensurePackages(onProgress);
  const onWait = (): void => onProgress(`…      waiting for another process that works on cluster '${options.name}'`);
  return withClusterLock(options.name, onWait, async () => {
    const found = await reusable(options);
    const binaries = await ensureAllBinaries(
      found?.kubernetesVersion ?? options.kubernetesVersion ?? KUBERNETES_VERSION,
      onProgress,
    );
    const record = await recordFor(options, found);
    const parts = nativeParts(record, binaries);
    await start(parts, onProgress);
    return nativeCluster({ parts, onProgress, down: () => down(record.name, onProgress) });
  });
}

/** The record of the cluster if its processes can still be there; after a reboot its remains are removed first. */
async function reusable({
  name,
  kubernetesVersion,
  fsync,
  onProgress,
}: NativeOptions): Promise<ClusterRecord | undefined> {
  const record = await readCluster(name);
  if (record === undefined) return undefined;
  if (record.bootId !== (await bootId())) {
    onProgress(`note   the machine was restarted since cluster '${name}' was made: starting a new one`);
    await down(name, onProgress, { locked: true });
    return undefined;
  }
  const differs = (what: string, has: string): Error =>
    new Error(`Cluster '${name}' has ${what} ${has}. End it first: npm run cluster -- down --name ${name}`);
  if (kubernetesVersion !== undefined && kubernetesVersion !== record.kubernetesVersion) {
    throw differs('Kubernetes', record.kubernetesVersion);
  }
  if (fsync !== undefined && fsync !== record.fsync) throw differs('fsync', String(record.fsync));
  return record;
}

async function recordFor(options: NativeOptions, found: ClusterRecord | undefined): Promise<ClusterRecord> {
  if (found !== undefined) {
    const record = { ...found, nodes: Math.max(found.nodes, options.nodes) };
    await writeCluster(record);
    return record;
  }
  return allocate({
    provider: 'native',
    name: options.name,
    nodes: options.nodes,
    kubernetesVersion: options.kubernetesVersion ?? KUBERNETES_VERSION,
    fsync: options.fsync ?? false,
    bootId: await bootId(),
  });
}

async function start(parts: NativeParts, onProgress: OnProgress): Promise<void> {
  const { layout } = parts;
  await mkdir(layout.logs, { recursive: true });
  const archives = await Promise.all(INITIAL_IMAGES.map((name) => buildImage(name, onProgress)));
  await step(onProgress, 'network and certificates', async () => {
    await run('mount', ['--make-rshared', '/']);
    await ensureClusterNetwork(layout);
    await ensureClusterCertificates(layout);
  });
  for (const program of parts.controlPlane) await step(onProgress, program.name, () => program.start());
  await Promise.all(
    parts.nodes.map(({ layout: node, programs }) =>
      step(onProgress, `${node.name}: containerd, images, kubelet, kube-proxy`, async () => {
        const others = parts.nodes.map((other) => other.layout).filter((other) => other.name !== node.name);
        await prepareNode(layout, node, others);
        await programs.containerd.start();
        for (const archive of archives) await loadIntoNode(node, archive);
        await programs.kubelet.start();
        await programs.kubeProxy.start();
      }),
    ),
  );
  const [first] = parts.nodes;
  if (first !== undefined) await ensureServiceRoute(layout, first.layout);
  await step(onProgress, 'nodes are ready', () => waitUntilReady(parts));
}

const READY_SECONDS = 120;

/** Ready nodes, and what a Pod in namespace `default` needs: its ServiceAccount and the CA. */
async function waitUntilReady(parts: NativeParts): Promise<void> {
  const kubectl = (...args: string[]): Promise<string> =>
    run(parts.binaries.kubectl, [...args], { env: { KUBECONFIG: parts.layout.kubeconfig } }).then(
      ({ stdout }) => stdout,
      () => '',
    );
  const condition = '{range .items[*]}{.metadata.name}={.status.conditions[?(@.type=="Ready")].status} {end}';
  await waitFor(
    async () => {
      const ready = await kubectl('get', 'nodes', '-o', `jsonpath=${condition}`);
      return parts.nodes.every(({ layout }) => ready.includes(`${layout.name}=True`));
    },
    {
      what: 'every node is ready',
      timeoutSeconds: READY_SECONDS,
      explain: async () =>
        (await Promise.all(parts.nodes.map(({ programs }) => programs.kubelet.logTail()))).join('\n'),
    },
  );
  await waitFor(
    async () =>
      (await kubectl('get', 'serviceaccount/default', 'configmap/kube-root-ca.crt', '-n', 'default', '-o', 'name')) !==
      '',
    { what: 'namespace default has its ServiceAccount', timeoutSeconds: READY_SECONDS },
  );
}
