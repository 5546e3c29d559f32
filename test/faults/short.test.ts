/**
 * A short run of the fault harness (`npm run faults` is the long one): some faults of Pods at the same time, with the guard
 * and without it. That without it corruption is found shows that the check can fail.
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../support/cluster.ts';
import { openTestCluster } from '../support/disturbed-cluster.ts';
import type { Kube } from '../support/kube.ts';
import type { Failpoint } from './failpoints/failpoint.ts';
import { failpointsOf } from './run.ts';
import { runSession, type Session } from './session.ts';

const SEED = 5;

const cluster = await openTestCluster();
let kube: Kube;

/** One fault on each of so many locks, long enough for the next grant. */
function session(guard: 'on' | 'off', names: readonly string[]): Promise<Session> {
  const failpoints = failpointsOf(names).map((failpoint): Failpoint => ({ ...failpoint, lasts: 'over-next-grant' }));
  return runSession({
    cluster,
    kube,
    guard,
    failpoints,
    seed: SEED,
    minutes: 0,
    locks: failpoints.length,
    contenders: 2,
    say: (line) => console.log(`guard ${guard}, seed ${SEED}: ${line}`),
  });
}

describe.skipIf(cluster.provider !== 'native').concurrent('faults of Pods under traffic', () => {
  beforeAll(() => {
    kube = openTestKube();
  });
  afterAll(() => kube?.close());

  it('break no rule of safety, and every lock comes to work again', async () => {
    const { violations, stuck, faults, refusals, gaps } = await session('on', [
      'SIGSTOP sidecar',
      'SIGKILL pod',
      'SIGSTOP pod',
    ]);
    expect(violations).toEqual([]);
    expect(stuck).toEqual([]);
    expect(faults).toHaveLength(3);
    expect(gaps).toBe(0);
    // The program whose sidecar is frozen runs on beside the next holder.
    expect(refusals).toBeGreaterThan(0);
  });

  it('corrupt the table when the guard is off, and the check finds that', async () => {
    const { violations, faults } = await session('off', ['SIGSTOP sidecar']);
    expect(faults).toMatchObject([{ failpoint: 'SIGSTOP sidecar' }]);
    expect(violations).toContainEqual(expect.objectContaining({ rule: 'guarded writes never go back', lock: 'lock1' }));
    expect(new Set(violations.map(({ rule }) => rule))).toEqual(new Set(['guarded writes never go back']));
  });
});
