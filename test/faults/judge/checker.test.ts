import { describe, expect, it } from 'vitest';
import type { Row } from '../database.ts';
import type { Life } from '../life.ts';
import { type History, type LeaseState, violations } from './checker.ts';
import { overruns } from './prompt-stop.ts';

const A = 'a_uid-a';
const B = 'b_uid-b';

const lease = (revision: number, holder: string, token: number, more: Partial<LeaseState> = {}): LeaseState => ({
  lock: 'lock1',
  revision: BigInt(revision),
  holder,
  token: BigInt(token),
  durationSeconds: 5,
  acquired: holder === '' ? 0 : token * 1000,
  renewed: token * 1000,
  deleted: false,
  ...more,
});
const row = (tick: number, token: number): Row => ({
  tick,
  lock: 'lock1',
  token: BigInt(token),
  pod: 'a',
  life: 'x',
  at: tick,
});
const life = (pod: string, token: number, more: Partial<Life> = {}): Life => ({
  lock: 'lock1',
  pod,
  life: `${pod}${token}`,
  token: BigInt(token),
  file: String(token),
  from: 0,
  to: 0,
  ...more,
});

/** A is granted the lock with token 10, releases it, and B gets it with token 20. */
const GOOD: History = {
  leases: [
    lease(5, '', 0),
    lease(11, A, 10),
    lease(12, A, 10, { renewed: 11_000 }),
    lease(19, '', 10),
    lease(21, B, 20),
  ],
  statuses: [{ lock: 'lock1', revision: 13n, holder: A, token: 10n }],
  guarded: [row(1, 10), row(2, 10), row(4, 20)],
  unguarded: [row(5, 10)],
  sealed: [row(3, 20)],
  lives: [life('a', 10), life('b', 20)],
};

const rules = (history: Partial<History>): readonly string[] =>
  violations({ ...GOOD, ...history }).map(({ rule }) => rule);

describe('the check of a history', () => {
  it('finds nothing wrong with one that is right', () => {
    expect(violations(GOOD)).toEqual([]);
  });

  it('finds a guarded write with an older token than one before', () => {
    expect(rules({ guarded: [row(1, 10), row(2, 20), row(3, 10)], sealed: [] })).toEqual([
      'guarded writes never go back',
    ]);
  });

  it('finds a guarded write after a seal with a greater token, also when nothing was written since', () => {
    expect(rules({ guarded: [row(1, 10), row(4, 10)] })).toEqual(['nothing is accepted after a seal']);
  });

  it('finds a grant whose token is not greater than all before, and a token that changes without a grant', () => {
    const rule = 'tokens of a Lease grow with each grant';
    expect(rules({ leases: [...GOOD.leases, lease(30, A, 15)] })).toEqual([rule]);
    expect(rules({ leases: [...GOOD.leases, lease(30, B, 21, { acquired: 20_000 })] })).toEqual([rule]);
  });

  it('finds the same Pod granted the lock again with the token that it had', () => {
    const again = [lease(30, '', 20), lease(31, B, 20, { acquired: 31_000 })];
    expect(rules({ leases: [...GOOD.leases, ...again] })).toEqual(['tokens of a Lease grow with each grant']);
  });

  it('lets a Lease that was made anew begin with token 0, but not grant an old token', () => {
    const anew = [...GOOD.leases, lease(30, '', 0)];
    expect(rules({ leases: [...anew, lease(31, A, 40)] })).toEqual([]);
    expect(rules({ leases: [...anew, lease(31, A, 15)] })).toEqual(['tokens of a Lease grow with each grant']);
  });

  it('finds two Pods with one token', () => {
    expect(rules({ leases: [...GOOD.leases, lease(30, A, 20)] })).toContain('no two Pods have one token');
  });

  it('finds a program without a token, with the token of another Pod, and with another one in its file', () => {
    const rule = 'no program starts without a grant';
    expect(rules({ lives: [life('a', 0, { file: '' })] })).toEqual([rule]);
    expect(rules({ lives: [life('a', 20)] })).toEqual([rule]);
    expect(rules({ lives: [life('a', 10, { file: '20' })] })).toEqual([rule]);
    expect(rules({ lives: [life('a', 10, { file: '' })] })).toEqual([]);
  });

  it('finds a status that names a holder before the Lease did, or with another token', () => {
    const rule = 'status names only holders of the Lease';
    expect(rules({ statuses: [{ lock: 'lock1', revision: 10n, holder: A, token: 10n }] })).toEqual([rule]);
    expect(rules({ statuses: [{ lock: 'lock1', revision: 25n, holder: A, token: 20n }] })).toEqual([rule]);
  });
});

describe('how long programs ran on', () => {
  it('is reckoned from the last renewal for the lease, and from the next grant for the time of two programs', () => {
    const [run] = overruns(GOOD.leases, [life('a', 10, { to: 20_300 })]);
    expect(run).toMatchObject({ leaseEnd: 16_000, pastLeaseMs: 4300, besideNextMs: 300 });
  });

  it('is nothing for a program that ended before', () => {
    expect(overruns(GOOD.leases, [life('a', 10, { to: 15_999 }), life('b', 20, { to: 25_000 })])).toEqual([]);
  });
});
