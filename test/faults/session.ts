/** A run from the cluster to the report: what `npm run faults` and the short test have in common. */
import type { Cluster } from '../../tools/cluster/index.ts';
import type { Kube } from '../support/kube.ts';
import type { Failpoint } from './failpoints/failpoint.ts';
import { readHistory } from './history.ts';
import type { Fault } from './inflict.ts';
import { type Report, report } from './judge/report.ts';
import { seeded } from './random.ts';
import { runFaults } from './run.ts';
import { openTraffic } from './traffic.ts';

export interface SessionOptions {
  readonly cluster: Cluster;
  readonly kube: Kube;
  readonly seed: number;
  readonly minutes: number;
  readonly locks: number;
  readonly contenders: number;
  readonly guard: 'on' | 'off';
  readonly failpoints: readonly Failpoint[];
  readonly say: (line: string) => void;
  readonly signal?: AbortSignal;
}

export interface Session extends Report {
  readonly faults: readonly Fault[];
  /** Revisions that the harness may not have seen. */
  readonly gaps: number;
  readonly refusals: number;
}

export async function runSession(options: SessionOptions): Promise<Session> {
  const { cluster, kube, say } = options;
  await using traffic = await openTraffic(options);
  say(`traffic of ${options.locks} locks in namespace ${traffic.namespace}`);
  const faults: Fault[] = [];
  let broken: string | undefined;
  try {
    await runFaults({
      ...options,
      world: { cluster, kube, traffic },
      random: seeded(options.seed),
      signal: options.signal ?? new AbortController().signal,
      onFault: (fault) => faults.push(fault),
    });
  } catch (error) {
    // What was seen until then is judged all the same.
    broken = error instanceof Error ? error.message : 'for no reason';
  }
  const result = report(await readHistory(traffic), faults);
  const stuck = broken === undefined ? result.stuck : [...result.stuck, `the run ended early: ${broken}`];
  return {
    ...result,
    stuck,
    faults,
    gaps: traffic.leases.gaps() + traffic.lockObjects.gaps() + traffic.pods.gaps(),
    refusals: await traffic.database.refusals(),
  };
}
