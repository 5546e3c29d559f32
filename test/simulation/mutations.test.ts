import { afterAll, describe, expect, it } from 'vitest';
import { MUTATIONS } from './mutations/mutations.ts';
import { runCrew, total } from './run/crew.ts';

/** A planted fault that is not found by then means that the simulation is too weak. */
const MOST_SEEDS = 1_200;

const found: { readonly mutation: string; readonly seeds: number; readonly invariant: string }[] = [];

afterAll(() => console.table(found));

describe('a planted fault is found', () => {
  it.each(MUTATIONS)('$name: $about', async ({ name }) => {
    const reports = await runCrew({ from: 1, runs: MOST_SEEDS, jobs: 1, mutation: name, stopsAtFailure: true });
    const { runs, failures } = total(reports);
    expect(failures.length, `not found by ${runs} seeds`).toBeGreaterThan(0);
    found.push({ mutation: name, seeds: runs, invariant: failures[0]?.invariant ?? '' });
  });
});
