/** A run's report, failpoint by failpoint. Pure. */

import type { Fault } from '../inflict.ts';
import { type History, lateWrites, type Violation, violations } from './checker.ts';
import { overruns } from './prompt-stop.ts';

/** Of one failpoint; runs add up by it. Times in seconds, worst of all; absent when there was none. */
export interface Row {
  readonly failpoint: string;
  readonly faults: number;
  /** Faults counted once for each lock that they struck. */
  readonly struck: number;
  /** How often the lock was granted anew because of it. */
  readonly lost: number;
  /** From the fault to the first accepted write of the next holder. */
  readonly toNextWrite?: number;
  /** From the end of the fault to a lock with a working holder and all others waiting. */
  readonly toCalm?: number;
  /** Programs that ran on after the end of their lease, and the longest. */
  readonly pastLease: number;
  readonly longestPastLease?: number;
  /** Programs that ran beside the next grant, and the longest. */
  readonly besideNext: number;
  readonly longestBesideNext?: number;
  /** Writes that a table without a guard accepted after one with a greater token. */
  readonly lateUnguarded: number;
  readonly notCalm: number;
  readonly violations: number;
}

export interface Report {
  readonly rows: readonly Row[];
  readonly violations: readonly Violation[];
  /** Locks that did not become calm in time, as sentences. */
  readonly stuck: readonly string[];
  readonly grants: number;
  readonly guardedWrites: number;
  readonly lateUnguarded: number;
}

const NOBODY = 'before any fault';

export function report(history: History, faults: readonly Fault[]): Report {
  const wrong = violations(history);
  const late = lateWrites(history.unguarded).map(({ row }) => ({ name: nameOf(faults, row.lock, row.at) }));
  const wrongNames = wrong.map(({ lock, at }) => ({ name: at === undefined ? NOBODY : nameOf(faults, lock, at) }));
  const over = overruns(history.leases, history.lives).map((run) => ({
    ...run,
    name: nameOf(faults, run.lock, run.leaseEnd + Math.max(run.pastLeaseMs, 0)),
  }));
  const names = [
    ...new Set([
      ...faults.map(({ failpoint }) => failpoint),
      ...[...over, ...late, ...wrongNames].map(({ name }) => name),
    ]),
  ];
  const rows = names.map((failpoint): Row => {
    const own = faults.filter((fault) => fault.failpoint === failpoint);
    const runs = over.filter(({ name }) => name === failpoint);
    const past = runs.filter(({ pastLeaseMs }) => pastLeaseMs > 0);
    const beside = runs.filter(({ besideNextMs }) => besideNextMs > 0);
    const lost = own.filter(({ nextWrite }) => nextWrite !== undefined);
    return {
      failpoint,
      faults: new Set(own.map(({ from }) => from)).size,
      struck: own.length,
      lost: lost.length,
      ...worst(
        'toNextWrite',
        lost.map(({ nextWrite = 0, from }) => nextWrite - from),
      ),
      ...worst(
        'toCalm',
        own.flatMap(({ calm, healed }) => (calm === undefined ? [] : [calm - healed])),
      ),
      pastLease: past.length,
      ...worst(
        'longestPastLease',
        past.map(({ pastLeaseMs }) => pastLeaseMs),
      ),
      besideNext: beside.length,
      ...worst(
        'longestBesideNext',
        beside.map(({ besideNextMs }) => besideNextMs),
      ),
      lateUnguarded: late.filter(({ name }) => name === failpoint).length,
      notCalm: own.filter(({ calm }) => calm === undefined).length,
      violations: wrongNames.filter(({ name }) => name === failpoint).length,
    };
  });
  return {
    rows,
    violations: wrong,
    stuck: faults.flatMap(({ failpoint, fault }) => (fault === undefined ? [] : [`${failpoint}: ${fault}`])),
    grants: new Set(history.leases.map(({ lock, token }) => `${lock} ${token}`)).size,
    guardedWrites: history.guarded.length,
    lateUnguarded: late.length,
  };
}

/** The last fault that struck the lock before; what was cut off may arrive when all is calm again. */
const nameOf = (faults: readonly Fault[], lock: string, at: number): string =>
  faults.filter((fault) => fault.lock === lock && fault.from <= at).toSorted((a, b) => b.from - a.from)[0]?.failpoint ??
  NOBODY;

function worst<Key extends string>(key: Key, milliseconds: readonly number[]): { readonly [K in Key]?: number } {
  if (milliseconds.length === 0) return {};
  return { [key]: Math.round(Math.max(...milliseconds)) / 1000 } as { readonly [K in Key]?: number };
}

/** Of several runs: counts add up, of times the worst. */
export function addRows(a: Row, b: Row): Row {
  const sum = { ...a } as Record<string, number | string>;
  for (const [key, value] of Object.entries(b)) {
    const known = sum[key];
    if (typeof value !== 'number') continue;
    if (typeof known !== 'number') sum[key] = value;
    else sum[key] = WORST.has(key) ? Math.max(known, value) : known + value;
  }
  return sum as unknown as Row;
}

const WORST: ReadonlySet<string> = new Set(['toNextWrite', 'toCalm', 'longestPastLease', 'longestBesideNext']);

const seconds = (value: number | undefined): string => (value === undefined ? '–' : `${value.toFixed(1)} s`);
const often = (count: number, longest: number | undefined): string =>
  count === 0 ? '0' : `${count}, ${seconds(longest)}`;

/** As Markdown. */
export function table(rows: readonly Row[]): string {
  const head = [
    '| failpoint | faults | locks struck | lock lost | worst, fault → next holder writes | worst, healed → calm | ran past its lease, longest | ran beside the next grant, longest | late writes without a guard | not calm in time | safety violations |',
    '|---|---|---|---|---|---|---|---|---|---|---|',
  ];
  const lines = rows.map((row) =>
    [
      row.failpoint,
      row.faults,
      row.struck,
      row.lost,
      seconds(row.toNextWrite),
      seconds(row.toCalm),
      often(row.pastLease, row.longestPastLease),
      often(row.besideNext, row.longestBesideNext),
      row.lateUnguarded,
      row.notCalm,
      row.violations,
    ].join(' | '),
  );
  return [...head, ...lines.map((line) => `| ${line} |`)].join('\n');
}
