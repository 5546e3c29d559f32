import { productDir } from './binaries/build.ts';
import { kubernetes } from './binaries/go-modules.ts';
import { run } from './exec.ts';
import { nativeParts } from './native/parts.ts';
import { bootId } from './native/proc.ts';
import { allClusters, type ClusterRecord } from './native/state.ts';
import { clusterDir } from './paths.ts';

/** Looks, and changes nothing. Returns the lines to print. */
export async function status(): Promise<readonly string[]> {
  const clusters = await allClusters();
  if (clusters.length === 0) return ['No cluster. Bring one up: npm run cluster -- up'];
  return (await Promise.all(clusters.map(describe))).flat();
}

async function describe(record: ClusterRecord): Promise<readonly string[]> {
  const head = `${record.name}: ${record.provider}, Kubernetes ${record.kubernetesVersion || '(of kind)'}, ${record.nodes} node(s), ${clusterDir(record.name)}`;
  if (record.provider === 'kind') return [head];
  if (record.bootId !== (await bootId())) return [head, '  ended by a restart of the machine; up starts a new one'];
  const { programs, layout } = nativeParts(record, {});
  const lines = await Promise.all(
    programs.map(
      async (program) => `  ${(await program.recordedPid()) === undefined ? 'down   ' : 'running'} ${program.name}`,
    ),
  );
  const kubectl = `${productDir(kubernetes(record.kubernetesVersion))}/kubectl`;
  const nodes = await run(kubectl, ['--kubeconfig', layout.kubeconfig, '--request-timeout=3s', 'get', 'nodes']).then(
    ({ stdout }) => stdout.trimEnd().split('\n'),
    (error: Error) => [error.message.split('\n')[0] ?? ''],
  );
  return [head, ...lines, ...nodes.map((line) => `  ${line}`)];
}
