import { expect, it } from 'vitest';
import type { Fault } from '../inflict.ts';
import { bag, seeded } from '../random.ts';
import type { History } from './checker.ts';
import { type LedgerEntry, page } from './ledger.ts';
import { addRows, report } from './report.ts';

const fault = (failpoint: string, from: number, more: Partial<Fault> = {}): Fault => ({
  failpoint,
  lock: 'lock1',
  from,
  healed: from + 6000,
  load: 1,
  ...more,
});
const lease = (token: number, holder: string, renewed: number) => ({
  lock: 'lock1',
  revision: BigInt(token),
  holder,
  token: BigInt(token),
  durationSeconds: 5,
  acquired: renewed,
  renewed,
  deleted: false,
});

/** Frozen at 10 s, its lease ends at 14 s, the next is granted at 20 s, and it runs until 22 s. */
const HISTORY: History = {
  leases: [lease(10, 'a_1', 9000), lease(20, 'b_2', 20_000)],
  statuses: [],
  guarded: [],
  unguarded: [
    { tick: 1, lock: 'lock1', token: 20n, pod: 'b', life: 'y', at: 21_000 },
    { tick: 2, lock: 'lock1', token: 10n, pod: 'a', life: 'x', at: 21_500 },
  ],
  sealed: [],
  lives: [{ lock: 'lock1', pod: 'a', life: 'x', token: 10n, file: '10', from: 9000, to: 22_000 }],
};
const FAULTS = [
  fault('SIGKILL program', 1000, { calm: 8000 }),
  fault('SIGSTOP pod', 10_000, { calm: 25_000, nextWrite: 20_500 }),
];

const QUIET = {
  faults: 1,
  toNextWrite: [],
  struck: 1,
  lost: 0,
  pastLease: 0,
  besideNext: 0,
  lateUnguarded: 0,
  notCalm: 0,
  violations: 0,
};

it('gives what happened to the last fault that struck the lock before', () => {
  const { rows, violations, stuck, lateUnguarded } = report(HISTORY, FAULTS);
  expect(violations).toEqual([]);
  expect(stuck).toEqual([]);
  expect(lateUnguarded).toBe(1);
  expect(rows).toEqual([
    { ...QUIET, failpoint: 'SIGKILL program', toCalm: [1] },
    {
      ...QUIET,
      failpoint: 'SIGSTOP pod',
      lost: 1,
      toNextWrite: [10.5],
      toCalm: [9],
      pastLease: 1,
      longestPastLease: 8,
      besideNext: 1,
      longestBesideNext: 2,
      lateUnguarded: 1,
    },
  ]);
});

it('says which lock did not become calm, and why', () => {
  const { rows, stuck } = report(HISTORY, [fault('SIGSTOP pod', 10_000, { fault: 'nobody holds it' })]);
  expect(rows).toMatchObject([{ notCalm: 1 }]);
  expect(stuck).toEqual(['SIGSTOP pod: nobody holds it']);
});

it('adds up runs: counts are summed, of single times the longest stays', () => {
  const [, row] = report(HISTORY, FAULTS).rows;
  if (row === undefined) throw new Error('no row');
  const { longestPastLease: _, ...without } = row;
  const other = { ...row, toNextWrite: [30], longestPastLease: 3 };
  expect(addRows(row, other)).toMatchObject({ faults: 2, lost: 2, toNextWrite: [10.5, 30], longestPastLease: 8 });
  expect(addRows(without, row)).toMatchObject({ longestPastLease: 8 });
  const entry: LedgerEntry = {
    date: '2026-01-01',
    seed: 7,
    commit: 'abc',
    kubernetes: '1.36.3',
    minutes: 10,
    locks: 1,
    contenders: 2,
    load: [1, 2],
    grants: 2,
    guardedWrites: 5,
    refusals: 1,
    lateUnguarded: 1,
    gaps: 0,
    rows: [row],
  };
  const text = page([entry, entry]);
  expect(text).toContain('20 minutes, 2 faults, 4 grants');
  expect(text).toContain('| SIGSTOP pod | 2 | 2 | 2 | 10.5 / 10.5 s | 9.0 / 9.0 s | 2, 8.0 s | 2, 2.0 s | 2 | 0 | 0 |');
});

it('chooses the same for the same seed, and everything once in each round', () => {
  const draw = (seed: number) => {
    const next = bag(['a', 'b', 'c'], seeded(seed));
    return Array.from({ length: 6 }, next);
  };
  expect(draw(1)).toEqual(draw(1));
  expect(draw(1)).not.toEqual(draw(2));
  expect(draw(1).slice(0, 3).toSorted()).toEqual(['a', 'b', 'c']);
  expect(draw(1).slice(3).toSorted()).toEqual(['a', 'b', 'c']);
});
