/** The operator in the cluster: the chart's installation, and which replica leads. */
import type { Cluster } from '../cluster/index.ts';
import type { Sight } from './sight.ts';

export const OPERATOR_NAMESPACE = 'kilit-system';
const RELEASE = 'kilit';
export const OPERATOR_CONTAINER = 'operator';
export const REPLICAS = 2;

/** Installs or upgrades; the annotation makes running operators start anew, since the image's tag stays the same. */
export async function installChart(cluster: Cluster, chart: string): Promise<void> {
  const values = [
    '--set',
    `image.tag=dev,replicas=${REPLICAS}`,
    '--set-string',
    `podAnnotations.demo-run=${Date.now()}`,
  ];
  const where = ['--namespace', OPERATOR_NAMESPACE, '--create-namespace'];
  await cluster.helm(['upgrade', '--install', RELEASE, chart, ...where, ...values, '--wait', '--timeout', '5m']);
}

export interface Leader {
  readonly pod: string;
  /** Changes with each leadership, also of the same Pod. */
  readonly since: string;
}

export function leaderOf({ election }: Sight): Leader | undefined {
  const identity = election?.spec?.holderIdentity ?? '';
  const [pod] = identity.split('_');
  if (pod === undefined || pod === '') return undefined;
  return { pod, since: election?.spec?.acquireTime ?? '' };
}
