import { type RunResult, runScenario } from './run.ts';
import type { Scenario } from './scenario.ts';

/** Runs made to shrink one failure, at most. */
const MOST_RUNS = 150;

export interface Shrunk {
  readonly scenario: Scenario;
  readonly result: RunResult;
}

/** Leaves out faults and Pods for as long as the same invariant is still violated. */
export async function shrink(failed: Scenario, invariant: string): Promise<Shrunk> {
  let best = failed;
  let runs = 0;
  const fails = async (scenario: Scenario): Promise<boolean> => {
    runs += 1;
    return runs <= MOST_RUNS && (await runScenario(scenario)).violation?.invariant === invariant;
  };
  for (let isSmaller = true; isSmaller; ) {
    isSmaller = false;
    for (const candidate of smaller(best)) {
      if (!(await fails(candidate))) continue;
      best = candidate;
      isSmaller = true;
      break;
    }
  }
  return { scenario: best, result: await runScenario(best, { traced: true }) };
}

function* smaller(scenario: Scenario): IterableIterator<Scenario> {
  const { faults, pods } = scenario;
  const half = Math.ceil(faults.length / 2);
  if (faults.length > 3) {
    yield { ...scenario, faults: faults.slice(0, half) };
    yield { ...scenario, faults: faults.slice(half) };
  }
  for (const fault of faults.toReversed()) yield { ...scenario, faults: faults.filter((each) => each !== fault) };
  if (pods.length > 1) for (const pod of pods) yield { ...scenario, pods: pods.filter((each) => each !== pod) };
}

/** What of a scenario is run: the faults and the Pods that are left. */
export function only(
  scenario: Scenario,
  left: { readonly faults?: readonly number[] | undefined; readonly pods?: readonly string[] | undefined },
): Scenario {
  return {
    ...scenario,
    faults: scenario.faults.filter(({ index }) => left.faults?.includes(index) ?? true),
    pods: scenario.pods.filter(({ name }) => left.pods?.includes(name) ?? true),
  };
}

/** The command that makes the run again. */
export function replayCommand(full: Scenario, left: Scenario, mutation: string | undefined): string {
  const parts = [`npm run sim -- --seed ${full.seed} --runs 1`];
  if (left.faults.length < full.faults.length) {
    parts.push(`--faults ${left.faults.map(({ index }) => index).join(',') || 'none'}`);
  }
  if (left.pods.length < full.pods.length) parts.push(`--pods ${left.pods.map(({ name }) => name).join(',')}`);
  if (mutation !== undefined) parts.push(`--mutation ${mutation}`);
  return [...parts, '--verbose'].join(' ');
}
