/**
 * Fifty connections of five processes write with old, equal and new tokens; processes freeze between enter and write and
 * between write and commit, and wake up after their token was passed. What was accepted is in the order of its tokens.
 *
 *   KILIT_TORTURE_WRITES=120000 npm test -- torture     more writes (default 15,000)
 *   KILIT_TORTURE_SEED=7                                the choices of a former run
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, sharedServer } from '../../../support/postgres/index.ts';
import { type Outcome, torture } from './driver.ts';
import { SEAL_WAIT_MS } from './messages.ts';

const WRITES = Number(process.env.KILIT_TORTURE_WRITES ?? 15_000);
const SEED = Number(process.env.KILIT_TORTURE_SEED ?? Date.now() % 1_000_000);
const TIMEOUT_MS = 120_000 + WRITES * 10;
/** What a loaded machine of two cores adds to the promise of `wait` and one second. */
const SLACK_MS = 4000;

function show(what: string, outcome: Outcome): void {
  const { sealMs, reports, ...rest } = outcome;
  const worst = Math.round(Math.max(0, ...sealMs));
  console.log(
    `${what}, seed ${SEED}: ${JSON.stringify({ ...rest, ...reports, seals: sealMs.length, worstSealMs: worst })}`,
  );
}

describe('many writers', () => {
  let database: Database;
  let unguarded: Database;
  beforeAll(async () => {
    database = await sharedServer().createDatabase();
    unguarded = await sharedServer().createDatabase();
  });
  afterAll(async () => {
    await database[Symbol.asyncDispose]();
    await unguarded[Symbol.asyncDispose]();
  });

  test('with the guard: no write after one with a greater token, nor after a seal', {
    timeout: TIMEOUT_MS,
  }, async () => {
    const outcome = await torture(database, { guarded: true, writes: WRITES, seed: SEED });
    show('guarded', outcome);
    expect(outcome).toMatchObject({ late: 0, afterSeal: 0, reports: { unexpected: [] } });
    expect(outcome.writes).toBe(outcome.reports.committed);
    expect(outcome.frozen['before-write']).toBeGreaterThan(0);
    expect(outcome.frozen['before-commit']).toBeGreaterThan(0);
    expect(outcome.reports.refused).toBeGreaterThan(0);
    expect(outcome.sessionsEnded).toBeGreaterThan(0);
    expect(Math.max(...outcome.sealMs)).toBeLessThan(SEAL_WAIT_MS + 1000 + SLACK_MS);
  });

  test('without the guard the same check finds late writes: it can fail', { timeout: TIMEOUT_MS }, async () => {
    const outcome = await torture(unguarded, { guarded: false, writes: Math.min(WRITES, 5000), seed: SEED });
    show('unguarded', outcome);
    expect(outcome.late).toBeGreaterThan(0);
  });
});
