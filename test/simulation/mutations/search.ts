import { runCrew, total } from '../run/crew.ts';

/** A planted fault that is not found by then means that the simulation is too weak. */
export const MOST_SEEDS = 1_200;

/** How a planted fault was found. */
export interface Finding {
  readonly mutation: string;
  /** How many seeds it took, from 1 on; `undefined`: not found by `MOST_SEEDS`. */
  readonly seeds: number | undefined;
  /** What it violated first. */
  readonly invariant: string;
}

/** Runs one seed after another with a planted fault until something is violated: the same seeds each time. */
export async function search(mutation: string): Promise<Finding> {
  const reports = await runCrew({ from: 1, runs: MOST_SEEDS, jobs: 1, mutation, stopsAtFailure: true, shrinks: false });
  const { failures } = total(reports);
  return { mutation, seeds: failures[0]?.seed, invariant: failures[0]?.invariant ?? '' };
}
