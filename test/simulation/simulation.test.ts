import { availableParallelism } from 'node:os';
import { describe, expect, it } from 'vitest';
import { runCrew, total } from './run/crew.ts';
import { runScenario } from './run/run.ts';
import { drawScenario } from './run/scenario.ts';
import { only, replayCommand } from './run/shrink.ts';

/** About a minute on two cores. `npm run sim` makes more. */
const RUNS = 1_500;

describe('the simulation', () => {
  it(`violates no invariant in ${RUNS} runs, and hands the lock on in them`, async () => {
    const reports = await runCrew({ from: 1, runs: RUNS, jobs: availableParallelism() });
    const { runs, grants, refused, failures } = total(reports);
    expect(failures.map(({ invariant, text, replay }) => `${invariant}: ${text}\n${replay}`)).toEqual([]);
    expect(runs).toBe(RUNS);
    // It would be worth nothing if nobody was granted anything, or no paused holder woke up and was refused.
    expect(grants).toBeGreaterThan(2 * RUNS);
    expect(refused).toBeGreaterThan(RUNS);
  });

  it.each([1, 42, 645])('makes the same run of seed %i again, event for event', async (seed) => {
    const first = await runScenario(drawScenario(seed), { traced: true });
    const again = await runScenario(drawScenario(seed), { traced: true });
    expect(first.trace.length).toBeGreaterThan(50);
    expect(again.trace).toEqual(first.trace);
  });

  it('makes another run of another seed', async () => {
    const [one, other] = [await runScenario(drawScenario(1)), await runScenario(drawScenario(2))];
    expect(other.events).not.toBe(one.events);
  });

  it('says how to make a shrunk run again', () => {
    const full = drawScenario(7);
    const left = only(full, { faults: [0, 2], pods: [full.pods[0]?.name ?? ''] });
    expect(replayCommand(full, left, undefined)).toBe(
      `npm run sim -- --seed 7 --runs 1 --faults 0,2 --pods ${full.pods[0]?.name} --verbose`,
    );
  });
});
