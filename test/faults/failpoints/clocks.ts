/** Steps of the wall clock of sidecars and operators, in the image that allows it (`tools/cluster/images/clock`). */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { SIDECAR_CONTAINER } from '../../../src/api/names.ts';
import type { Cluster } from '../../../tools/cluster/index.ts';
import { OPERATOR_NAMESPACE } from '../../support/install.ts';
import type { Random } from '../random.ts';
import type { Failpoint, Heal } from './failpoint.ts';
import { loseSome } from './lose.ts';

/** libfaketime reads it at each look at the clock. */
const CLOCK_FILE = 'etc/faketimerc';

/** As containerd keeps it: what is written there from outside is seen inside, although the container may not write. */
function rootsOf(cluster: Cluster, node: string, uid: string, container: string): readonly string[] {
  const tasks = join(dirname(cluster.kubeconfigPath), node, 'containerd-state/io.containerd.runtime.v2.task/k8s.io');
  return readdirSync(tasks)
    .map((id) => join(tasks, id))
    .filter((task) => {
      const config = existsSync(join(task, 'config.json')) ? readFileSync(join(task, 'config.json'), 'utf8') : '';
      return config.includes(`/pod${uid}/`) && config.includes(`"io.kubernetes.cri.container-name":"${container}"`);
    })
    .map((task) => join(task, 'rootfs'));
}

interface Stepped {
  readonly uid: string;
  readonly node: string;
  readonly container: string;
}

/** Each by an hour to one side or the other, and back. */
async function step(cluster: Cluster, random: Random, all: readonly Stepped[]): Promise<Heal> {
  const files = all
    .flatMap(({ node, uid, container }) => rootsOf(cluster, node, uid, container))
    .map((root) => join(root, CLOCK_FILE));
  for (const file of files) await writeFile(file, random.pick(['+3600', '-3600']));
  // A container that ended meanwhile has taken its file along.
  return () => Promise.all(files.map((file) => rm(file, { force: true })));
}

export const CLOCK_FAILPOINTS: readonly Failpoint[] = [
  {
    name: 'clock step of sidecars',
    level: 'pod',
    lasts: 'over-lease',
    inflict: ({ cluster, random, traffic, lock }) =>
      step(
        cluster,
        random,
        traffic.podsOf(lock).map(({ metadata, spec }) => ({
          uid: metadata.uid,
          node: spec.nodeName ?? '',
          container: SIDECAR_CONTAINER,
        })),
      ),
  },
  {
    name: 'clock step of operators',
    level: 'cluster',
    lasts: 'over-lease',
    async inflict(fault) {
      const { items } = await fault.kube.must('GET', `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods`);
      const pods = items as { metadata: { uid: string }; spec: { nodeName?: string } }[];
      const heal = await step(
        fault.cluster,
        fault.random,
        pods.map(({ metadata, spec }) => ({ uid: metadata.uid, node: spec.nodeName ?? '', container: 'operator' })),
      );
      await loseSome(fault);
      return heal;
    },
  },
];
