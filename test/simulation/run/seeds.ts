import { describeFault } from './faults.ts';
import type { Failure, Report } from './messages.ts';
import { runScenario } from './run.ts';
import { drawScenario } from './scenario.ts';
import { replayCommand, shrink } from './shrink.ts';

const TRACE_LINES = 30;

export interface SeedRange {
  readonly from: number;
  readonly count: number;
  readonly mutation: string | undefined;
  readonly stopsAtFailure: boolean;
  readonly shrinks: boolean;
}

/** Runs one seed after another, and shrinks what fails if it is asked to. */
export async function runSeeds({ from, count, mutation, stopsAtFailure, shrinks }: SeedRange): Promise<Report> {
  let [runs, events, grants, refused] = [0, 0, 0, 0];
  const failures: Failure[] = [];
  for (let seed = from; seed < from + count; seed += 1) {
    const scenario = drawScenario(seed);
    const result = await runScenario(scenario);
    runs += 1;
    events += result.events;
    grants += result.grants;
    refused += result.refused;
    if (result.violation === undefined) continue;
    const { invariant, text, atMs } = result.violation;
    const shrunk = shrinks ? await shrink(scenario, invariant) : { scenario, result };
    failures.push({
      seed,
      invariant,
      text,
      atMs,
      replay: replayCommand(scenario, shrunk.scenario, mutation),
      faults: shrunk.scenario.faults.map(describeFault),
      trace: shrunk.result.trace.slice(-TRACE_LINES),
    });
    if (stopsAtFailure) break;
  }
  return { from, runs, events, grants, refused, failures };
}
