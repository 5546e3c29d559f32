/** The demo from the first line to the last: cluster, chart, lock, acts. */
import { join } from 'node:path';
import { whyNoExample } from '../cluster/images/example.ts';
import { type Cluster, EXAMPLE_IMAGE, KILIT_IMAGE, openCluster, TEST_IMAGE } from '../cluster/index.ts';
import { repositoryRoot } from '../cluster/paths.ts';
import { step } from '../cluster/progress.ts';
import { deletePod } from './acts/delete-pod.ts';
import { freezePod } from './acts/freeze-pod.ts';
import { killOperator } from './acts/kill-operator.ts';
import { killProgram } from './acts/kill-program.ts';
import { pausedHolder } from './acts/paused-holder.ts';
import { openBilling } from './billing.ts';
import { fillUp, type Next } from './hand-over.ts';
import { LEASE_SECONDS, LOCK, lockObject, MADE_BY_DEMO, manifest, NAMESPACE, namespaceObject } from './objects.ts';
import { installChart } from './operator.ts';
import type { Shown } from './outro.ts';
import type { Screen } from './screen.ts';
import { openStage, progressTo, type Stage } from './stage.ts';
import { wrap } from './view.ts';

interface Act {
  readonly title: string;
  readonly play: (stage: Stage) => Promise<Next>;
}

const ACTS: readonly Act[] = [
  { title: 'the program of the holder is killed', play: killProgram },
  { title: "the holder's Pod is deleted", play: deletePod },
  { title: 'the holder is frozen, and wakes up too late', play: freezePod },
  { title: 'the operator is killed', play: killOperator },
];
/** Needs a PostgreSQL that not every machine has. */
const LAST_ACT: Act = { title: 'a holder is paused while it charges customers', play: pausedHolder };

const INTRO =
  'kilit: named locks for Kubernetes. Each grant carries a fencing token, a number that only grows. This demo starts ' +
  'a real cluster on this machine, lets Pods compete for one lock, kills things, and ends with a database that refuses a late writer. It ' +
  'takes about three minutes; the first time ever 12 or more on top, because Kubernetes is built from its sources.';

export interface DemoRun {
  readonly name: string;
  readonly screen: Screen;
  readonly signal: AbortSignal;
  readonly elapsed: () => string;
  /** Told as soon as there is a cluster that may have to be ended. */
  readonly opened: (cluster: Cluster) => void;
}

/** Returns what each act showed. @throws DemoFailed when one did not show what it claims. */
export async function playDemo(run: DemoRun): Promise<readonly Shown[]> {
  const { screen, signal } = run;
  screen.print(...wrap(INTRO, { width: screen.width, indent: 0 }), '');
  const cluster = await prepare(run);
  await using stage = openStage({ ...run, cluster });
  stage.heading(`A lock '${LOCK}' and three Pods that want it`);
  await stage.say(
    `Each Pod carries the label kilit.dev/lock=${LOCK} and a small program that prints its token each second. The lease ` +
      `lasts ${LEASE_SECONDS} s here, so that you wait less; the default is 15 s.`,
  );
  const first = await fillUp(stage);
  stage.result(
    `${first.name} holds with token ${first.token}; the other two wait behind the gate: their programs have not been started.`,
  );
  const shown: Shown[] = [];
  const missing = whyNoExample();
  const acts = missing === undefined ? [...ACTS, LAST_ACT] : ACTS;
  for (const [index, { title, play }] of acts.entries()) {
    signal.throwIfAborted();
    stage.heading(`Act ${index + 1} of ${acts.length}: ${title}`);
    shown.push({ title, ...(await play(stage)) });
  }
  if (missing !== undefined) {
    stage.heading(`Left out: ${LAST_ACT.title}, since ${missing}`);
    await fillUp(stage);
  }
  return shown;
}

async function prepare({ name, screen, signal, elapsed, opened }: DemoRun): Promise<Cluster> {
  const onProgress = progressTo({ screen, elapsed, signal });
  const cluster = await openCluster({ name, onProgress });
  opened(cluster);
  signal.throwIfAborted();
  await cluster.loadImage(KILIT_IMAGE, TEST_IMAGE, ...(whyNoExample() === undefined ? [EXAMPLE_IMAGE] : []));
  signal.throwIfAborted();
  await step(onProgress, 'install the chart', () => installChart(cluster, join(repositoryRoot, 'charts', 'kilit')));
  signal.throwIfAborted();
  await step(onProgress, `make lock ${NAMESPACE}/${LOCK}`, () => makeLock(cluster));
  return cluster;
}

/** On a cluster of an earlier run the lock stays, with its token; only its Pods are made anew. */
async function makeLock(cluster: Cluster): Promise<void> {
  await cluster.kubectl(['apply', '-f', '-'], { input: manifest(namespaceObject, lockObject) });
  const ours = Object.entries(MADE_BY_DEMO).map(([key, value]) => `${key}=${value}`);
  await cluster.kubectl(['delete', 'pods', '-n', NAMESPACE, '-l', ours.join(',')]);
  await openBilling(cluster, NAMESPACE).remove();
  const others = await cluster.kubectl(['get', 'pods', '-n', NAMESPACE, '-l', `kilit.dev/lock=${LOCK}`, '-o', 'name']);
  if (others.trim() !== '') {
    throw new Error(
      `Namespace ${NAMESPACE} has Pods that this demo did not make, and they would take part: ` +
        `${others.trim().split('\n').join(', ')}. Delete them, or run the demo with --name NAME in another cluster.`,
    );
  }
  await cluster.kubectl(['wait', 'dlock', LOCK, '-n', NAMESPACE, '--for=condition=Ready', '--timeout=60s']);
}
