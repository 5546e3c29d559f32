/**
 * A real Kubernetes cluster for tests, the demo and the fault harness.
 *
 *   const cluster = await openCluster({ name: 'dev', nodes: 2, onProgress: console.log });
 *   await cluster.loadImage(KILIT_IMAGE);
 *   await cluster.kubectl(['apply', '-f', '-'], { input: manifest });
 *   await cluster.component('kube-apiserver').pause();
 */
import { DEFAULT_CLUSTER } from './constants.ts';
import { openExisting } from './existing.ts';
import { hasContainerEngine, openKind } from './kind.ts';
import { readCluster } from './native/state.ts';
import { up, whyNotNative } from './native/up.ts';
import type { Cluster, OpenOptions, ProviderName } from './types.ts';
import { nameFault, nodesFault } from './validate.ts';

export { CLOCK_IMAGE, EXAMPLE_IMAGE, KILIT_IMAGE, KUBERNETES_VERSION, TEST_IMAGE } from './constants.ts';
export { buildImage, type ImageArchive } from './images/image.ts';
export {
  type Cluster,
  type ClusterNode,
  type Component,
  NotSupported,
  type OnProgress,
  type OpenOptions,
} from './types.ts';

type Wanted = OpenOptions & Required<Pick<OpenOptions, 'name' | 'nodes' | 'onProgress'>>;

const PROVIDERS: Readonly<Record<ProviderName, (wanted: Wanted) => Promise<Cluster>>> = {
  existing: openExisting,
  kind: openKind,
  native: up,
};

/** Brings the cluster up unless it is, and opens it. Idempotent; safe to call from several processes at once. */
export async function openCluster(options: OpenOptions = {}): Promise<Cluster> {
  const name = options.name ?? DEFAULT_CLUSTER;
  const nodes = options.nodes ?? 1;
  const faults = [nameFault(name), nodesFault(nodes)].filter((fault) => fault !== undefined);
  if (faults.length > 0) throw new Error(faults.join('; '));
  const onProgress = options.onProgress ?? ((): void => {});
  const wanted = { ...options, name, nodes, onProgress };
  return PROVIDERS[await chooseProvider(wanted)](wanted);
}

/** In this order: what was asked for, a kubeconfig that was named, what the cluster already is, kind, native. */
async function chooseProvider(options: Wanted): Promise<ProviderName> {
  if (options.provider !== undefined) return options.provider;
  if (options.kubeconfig !== undefined || options.context !== undefined) return 'existing';
  const record = await readCluster(options.name);
  if (record !== undefined) return record.provider;
  if (await hasContainerEngine()) return 'kind';
  const reason = whyNotNative();
  if (reason === undefined) return 'native';
  throw new Error(
    `No way to run a cluster here:\n` +
      `- existing: name one with --kubeconfig FILE (or KILIT_KUBECONFIG) and, if need be, --context NAME\n` +
      `- kind: no Docker or Podman engine answers; start one and install kind\n` +
      `- native: ${reason}`,
  );
}
