import { assert, asyncProperty, integer } from 'fast-check';
import { expect, test } from 'vitest';
import { type RunReport, randomRun } from './support/random-run.ts';

/** More for a long search: KILIT_ELECTION_RUNS=5000. The seed of a failing run is in fast-check's counterexample. */
const RUNS = Number(process.env['KILIT_ELECTION_RUNS'] ?? 120);

test('never shows two leaders, releases only after the work, and leads again, whatever fails', {
  timeout: RUNS * 1000,
}, async () => {
  const reports: RunReport[] = [];
  await assert(
    asyncProperty(integer({ min: 0, max: 2 ** 32 - 1 }), async (seed) => {
      reports.push(await randomRun(seed));
    }),
    { numRuns: RUNS, endOnFailure: true },
  );
  const sum = (key: keyof RunReport) => reports.reduce((total, report) => total + report[key], 0);
  // The runs are worth something only if they do lose, release and lead.
  expect(sum('losses')).toBeGreaterThan(RUNS);
  expect(sum('releases')).toBeGreaterThan(RUNS);
  expect(sum('leaderSeconds')).toBeGreaterThan(60 * RUNS);
  if (process.env['KILIT_ELECTION_RUNS'] !== undefined) {
    console.log({
      runs: reports.length,
      terms: sum('terms'),
      losses: sum('losses'),
      releases: sum('releases'),
      requests: sum('requests'),
    });
  }
});
