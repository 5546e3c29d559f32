/** A run's report, failpoint by failpoint. Pure. */

import { median } from '../../../tools/measure/figures.ts';
import type { Fault } from '../inflict.ts';
import { type History, lateWrites, type Violation, violations } from './checker.ts';
import { overruns } from './prompt-stop.ts';

/** Of one failpoint; runs add up by it. Times in seconds. */
export interface Row {
  readonly failpoint: string;
  readonly faults: number;
  /** Faults counted once for each lock that they struck. */
  readonly struck: number;
  /** How often the lock was granted anew because of it. */
  readonly lost: number;
  /** From the fault to the first accepted write of the next holder, of each lock that was lost. */
  readonly toNextWrite: readonly number[];
  /** From the end of the fault to a lock with a working holder and all others waiting, of each lock. */
  readonly toCalm: readonly number[];
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
      toNextWrite: lost.map(({ nextWrite = 0, from }) => inSeconds(nextWrite - from)),
      toCalm: own.flatMap(({ calm, healed }) => (calm === undefined ? [] : [inSeconds(calm - healed)])),
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

const inSeconds = (milliseconds: number): number => Math.round(milliseconds / 100) / 10;

function worst<Key extends string>(key: Key, milliseconds: readonly number[]): { readonly [K in Key]?: number } {
  if (milliseconds.length === 0) return {};
  return { [key]: inSeconds(Math.max(...milliseconds)) } as { readonly [K in Key]?: number };
}

/** Of several runs: counts and lists add up, of single times the longest stays. */
export function addRows(a: Row, b: Row): Row {
  const sum = { ...a } as Record<string, number | string | readonly number[]>;
  for (const [key, value] of Object.entries(b)) {
    const known = sum[key];
    if (Array.isArray(value)) sum[key] = [...(known as readonly number[]), ...value];
    else if (typeof value !== 'number') continue;
    else if (typeof known !== 'number') sum[key] = value;
    else sum[key] = key.startsWith('longest') ? Math.max(known, value) : known + value;
  }
  return sum as unknown as Row;
}

const often = (count: number, longest: number | undefined): string =>
  count === 0 ? '0' : `${count}, ${(longest ?? 0).toFixed(1)} s`;

/** Median and worst. */
function times(seconds: readonly number[]): string {
  if (seconds.length === 0) return '–';
  return `${median(seconds).toFixed(1)} / ${Math.max(...seconds).toFixed(1)} s`;
}

/** As Markdown. */
export function table(rows: readonly Row[]): string {
  const head = [
    '| failpoint | faults | locks struck | lock lost | fault → next holder writes, median / worst | healed → calm, median / worst | ran past its lease, longest | ran beside the next grant, longest | late writes without a guard | not calm in time | safety violations |',
    '|---|---|---|---|---|---|---|---|---|---|---|',
  ];
  const lines = rows.map((row) =>
    [
      row.failpoint,
      row.faults,
      row.struck,
      row.lost,
      times(row.toNextWrite),
      times(row.toCalm),
      often(row.pastLease, row.longestPastLease),
      often(row.besideNext, row.longestBesideNext),
      row.lateUnguarded,
      row.notCalm,
      row.violations,
    ].join(' | '),
  );
  return [...head, ...lines.map((line) => `| ${line} |`)].join('\n');
}
