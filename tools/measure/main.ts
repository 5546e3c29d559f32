/**
 * `npm run measure`: the figures of the README, on a real cluster of two nodes. Takes about 45 minutes.
 */
import { parseArgs } from 'node:util';
import { installArgs } from '../../test/support/install.ts';
import { openKube } from '../../test/support/kube.ts';
import { Scene } from '../../test/support/scene.ts';
import { KILIT_IMAGE, openCluster } from '../cluster/index.ts';
import type { Bench } from './bench.ts';
import { churn, churnReal } from './churn.ts';
import { type Figure, table } from './figures.ts';
import { cutOff, deletion, programKilled, silentDeath } from './handovers.ts';
import { losses } from './losses.ts';
import { leaderKilled, memory, writes } from './operator.ts';
import { drain, handover, rollout } from './yields.ts';

const HELP = `Measures kilit on a real cluster and prints a table of medians and worst values.

  npm run measure                     everything but churn, 20 tries each (5 for the slow ones), about 45 minutes
  npm run measure -- --only deletion  one part: deletion, killed, cut, losses, silent, rollout, drain,
                                      handover, leader, writes, memory, churn, churn-real
  npm run measure -- --tries 5        fewer tries

Options: --name NAME of the cluster (default measure), --keep it up afterwards, --locks N for memory (default 1000),
--churned N locks that are used once and deleted (default 10000), and three for each hundred with real Pods.
`;

const { values: options } = parseArgs({
  options: {
    name: { type: 'string', default: 'measure' },
    only: { type: 'string' },
    tries: { type: 'string', default: '20' },
    locks: { type: 'string', default: '1000' },
    churned: { type: 'string', default: '10000' },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const few = Math.min(5, Number(options.tries));
const PARTS: Readonly<Record<string, (bench: Bench) => Promise<readonly Figure[]>>> = {
  deletion,
  killed: programKilled,
  cut: cutOff,
  losses,
  silent: (bench) => silentDeath(bench, few),
  rollout,
  drain: (bench) => drain(bench, few),
  handover,
  leader: (bench) => leaderKilled(bench, few),
  writes,
  memory: (bench) => memory(bench, Number(options.locks)),
  churn: (bench) => churn(bench, Number(options.churned)),
  'churn-real': (bench) => churnReal(bench, Math.ceil(Number(options.churned) * 0.03)),
};

if (options.help) process.stdout.write(HELP);
else process.exitCode = await measure();

async function measure(): Promise<number> {
  const wanted =
    options.only === undefined
      ? Object.keys(PARTS).filter((part) => !part.startsWith('churn'))
      : options.only.split(',');
  const unknown = wanted.filter((name) => !(name in PARTS));
  const tries = Number(options.tries);
  if (unknown.length > 0 || !(tries >= 1)) {
    process.stderr.write(`Unknown part ${unknown.join(', ') || '–'} or tries ${options.tries}.\n\n${HELP}`);
    return 2;
  }
  const startedAt = performance.now();
  const say = (line: string) =>
    process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)} s  ${line}\n`);
  const cluster = await openCluster({ name: options.name, nodes: 2, onProgress: say });
  await cluster.loadImage(KILIT_IMAGE);
  await cluster.helm(installArgs({ replicas: 2 }));
  const kube = openKube(cluster.kubeconfigPath, cluster.kubectlPath);
  const figures: Figure[] = [];
  for (const name of wanted) {
    await using scene = await Scene.open(kube, 'measure');
    say(`part ${name}`);
    const part = await PARTS[name]?.({ cluster, scene, tries, say });
    figures.push(...(part ?? []));
    process.stdout.write(`${table(part ?? [])}\n\n`);
  }
  process.stdout.write(`Kubernetes ${cluster.kubernetesVersion}, two nodes on one machine\n\n${table(figures)}\n`);
  kube.close();
  if (!options.keep) await cluster.down();
  return 0;
}
