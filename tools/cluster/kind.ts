/** A cluster in Docker or Podman, by kind. Node programs can be stopped; other faults need the native provider. */
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { findCommand, run, succeeds } from './exec.ts';
import { clusterOfKubeconfig, readNodes } from './existing.ts';
import { bootId } from './native/proc.ts';
import { readCluster, withClusterLock, writeCluster } from './native/state.ts';
import { clusterDir, repositoryRoot } from './paths.ts';
import { step } from './progress.ts';
import type { Cluster, ClusterNode, OnProgress } from './types.ts';

const ENGINES = ['docker', 'podman'] as const;
const ENGINE_SECONDS = 10;

interface KindOptions {
  readonly name: string;
  readonly nodes: number;
  readonly onProgress: OnProgress;
  readonly kubernetesVersion?: string;
}

async function containerEngine(): Promise<string | undefined> {
  for (const engine of ENGINES) {
    if (findCommand(engine) === undefined) continue;
    if (await succeeds(engine, ['info'], { timeoutSeconds: ENGINE_SECONDS })) return engine;
  }
  return undefined;
}

export const hasContainerEngine = async (): Promise<boolean> => (await containerEngine()) !== undefined;

/** The manifest with one worker for every node after the first. Pure. */
export function kindConfig(manifest: string, nodes: number): string {
  const config = parse(manifest) as { readonly nodes: readonly object[] };
  const workers = Array.from({ length: nodes - 1 }, () => ({ role: 'worker' }));
  return stringify({ ...config, nodes: [...config.nodes, ...workers] });
}

export async function openKind(options: KindOptions): Promise<Cluster> {
  const engine = await containerEngine();
  if (engine === undefined)
    throw new Error(`No container engine answers; tried: ${ENGINES.join(', ')}. Start one of them.`);
  if (findCommand('kind') === undefined) {
    throw new Error(
      `${engine} answers, but the command 'kind' is missing. Install kind, or use --provider native (Linux, root).`,
    );
  }
  const kind = kindCommand(engine);
  const kubeconfig = join(clusterDir(options.name), 'admin.kubeconfig');
  const onWait = (): void => options.onProgress(`…      waiting for another process that works on '${options.name}'`);
  await withClusterLock(options.name, onWait, () => ensureKind(options, kind, kubeconfig));
  const cluster = clusterOfKubeconfig('kind', options.name, { kubeconfig });
  const read = await readNodes(cluster);
  const nodes = read.nodes.map((node) => kindNode(engine, node));
  return {
    ...cluster,
    ...read,
    nodes,
    node: (name) => nodes.find((node) => node.name === name) ?? read.node(name),
    loadImage: (...images) => loadIntoKind({ ...options, engine, kind }, images),
    down: () => downKind(options.name, options.onProgress),
  };
}

type Kind = (...args: string[]) => Promise<string>;

const kindCommand =
  (engine: string): Kind =>
  async (...args) =>
    (await run('kind', args, { env: { KIND_EXPERIMENTAL_PROVIDER: engine }, timeoutSeconds: 900 })).stdout;

const kindName = (name: string): string => `kilit-${name}`;

async function ensureKind(options: KindOptions, kind: Kind, kubeconfig: string): Promise<void> {
  const { name, nodes, onProgress } = options;
  await mkdir(clusterDir(name), { recursive: true });
  const exists = (await kind('get', 'clusters')).split('\n').includes(kindName(name));
  if (!exists) {
    const config = join(clusterDir(name), 'kind.yaml');
    await writeFile(config, kindConfig(await readFile(join(repositoryRoot, 'manifests', 'kind.yaml'), 'utf8'), nodes));
    const image =
      options.kubernetesVersion === undefined ? [] : ['--image', `kindest/node:v${options.kubernetesVersion}`];
    const args = ['--name', kindName(name), '--config', config, '--kubeconfig', kubeconfig, '--wait', '120s', ...image];
    await step(onProgress, `create kind cluster ${kindName(name)}`, () => kind('create', 'cluster', ...args));
  } else if (!existsSync(kubeconfig)) {
    await kind('export', 'kubeconfig', '--name', kindName(name), '--kubeconfig', kubeconfig);
  }
  const version = options.kubernetesVersion ?? '';
  const boot = await bootId().catch(() => '');
  await writeCluster({
    provider: 'kind',
    name,
    index: -1,
    nodes,
    kubernetesVersion: version,
    fsync: false,
    bootId: boot,
  });
}

function kindNode(engine: string, node: ClusterNode): ClusterNode {
  const inside = (...command: string[]): Promise<string> =>
    run(engine, ['exec', node.name, ...command]).then(({ stdout }) => stdout);
  const systemctl = async (verb: string): Promise<void> => {
    await inside('systemctl', verb, 'kubelet');
  };
  return {
    ...node,
    stopKubelet: () => systemctl('stop'),
    startKubelet: () => systemctl('start'),
    restartKubelet: () => systemctl('restart'),
    ctr: (args) => inside('ctr', '-n', 'k8s.io', ...args),
  };
}

/** An archive is loaded as it is; a name is built from the Dockerfile by the engine first, if it is kilit's own. */
async function loadIntoKind(
  at: KindOptions & { readonly engine: string; readonly kind: Kind },
  images: readonly string[],
): Promise<void> {
  const { engine, kind, name, onProgress } = at;
  for (const image of images) {
    if (existsSync(image)) {
      await step(onProgress, `load ${image}`, () => kind('load', 'image-archive', image, '--name', kindName(name)));
      continue;
    }
    await step(onProgress, `build ${image}`, () =>
      run(engine, ['build', '-t', image, '-f', dockerfileOf(image), repositoryRoot]),
    );
    await step(onProgress, `load ${image}`, async () => {
      const dir = await mkdtemp(join(tmpdir(), 'kilit-image-'));
      try {
        await run(engine, ['save', '-o', join(dir, 'image.tar'), image]);
        await kind('load', 'image-archive', join(dir, 'image.tar'), '--name', kindName(name));
      } finally {
        await rm(dir, { recursive: true, force: true });
      }
    });
  }
}

function dockerfileOf(image: string): string {
  if (image.includes('kilit-test')) return join(import.meta.dirname, 'images', 'test', 'Dockerfile.docker');
  if (image.includes('kilit-example')) return join(repositoryRoot, 'examples', 'paused-holder', 'Dockerfile');
  return join(repositoryRoot, 'Dockerfile');
}

/** Only a cluster that this harness recorded. */
export async function downKind(name: string, onProgress: OnProgress): Promise<void> {
  const engine = await containerEngine();
  if (engine === undefined || (await readCluster(name))?.provider !== 'kind') return;
  await step(onProgress, `delete kind cluster ${kindName(name)}`, () =>
    kindCommand(engine)(
      'delete',
      'cluster',
      '--name',
      kindName(name),
      '--kubeconfig',
      join(clusterDir(name), 'admin.kubeconfig'),
    ),
  );
  await rm(clusterDir(name), { recursive: true, force: true });
}
