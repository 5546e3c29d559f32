/** The ledger: runs as JSON lines, and a page that adds them up. */
import { appendFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { addRows, type Row, table } from './report.ts';

export interface LedgerEntry {
  readonly date: string;
  readonly seed: number;
  readonly commit: string;
  readonly kubernetes: string;
  /** From the start of the command to the report. */
  readonly minutes: number;
  readonly locks: number;
  readonly contenders: number;
  /** Average load of the machine's last minute at the beginning and at the end. */
  readonly load: readonly number[];
  readonly grants: number;
  readonly guardedWrites: number;
  readonly refusals: number;
  readonly lateUnguarded: number;
  /** How often the harness may have missed revisions. */
  readonly gaps: number;
  readonly rows: readonly Row[];
  /** What a reader must know of this run; written by hand. */
  readonly note?: string;
}

const DIR = join(import.meta.dirname, '../../../docs/evidence');
const RUNS = join(DIR, 'faults.jsonl');

/** Appends the run and writes the page anew. */
export async function addToLedger(entry: LedgerEntry): Promise<void> {
  await mkdir(DIR, { recursive: true });
  await appendFile(RUNS, `${JSON.stringify(entry)}\n`);
  const runs = (await readFile(RUNS, 'utf8'))
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as LedgerEntry);
  await writeFile(join(DIR, 'faults.md'), page(runs));
}

/** Pure. */
export function page(runs: readonly LedgerEntry[]): string {
  const rows = new Map<string, Row>();
  for (const row of runs.flatMap((run) => run.rows)) {
    const known = rows.get(row.failpoint);
    rows.set(row.failpoint, known === undefined ? row : addRows(known, row));
  }
  const sum = (of: (run: LedgerEntry) => number): number => runs.reduce((total, run) => total + of(run), 0);
  const violations = sum((run) => run.rows.reduce((total, row) => total + row.violations, 0));
  const stuck = sum((run) => run.rows.reduce((total, row) => total + row.notCalm, 0));
  const faults = sum((run) => run.rows.reduce((total, row) => total + row.faults, 0));
  return `# Faults injected into a real cluster

Made by \`npm run faults -- --ledger\`; the runs are in [faults.jsonl](faults.jsonl). Two nodes on one machine of two cores,
lease 5 s, delay 5 s. Programs write every 100 or 200 ms, guarded and unguarded, and go on when they are refused. The machine had
other work besides (load in the list of runs), so times are pessimistic.

${sum((run) => run.minutes).toFixed(0)} minutes, ${faults} faults, ${sum((run) => run.grants)} grants,
${sum((run) => run.guardedWrites)} guarded writes, ${sum((run) => run.refusals)} refused by the guard:
**${violations} safety violations, ${stuck} locks not calm within three minutes.**
${sum((run) => run.lateUnguarded)} late writes went into a table without a guard meanwhile.

## By failpoint
${table([...rows.values()].toSorted((a, b) => (a.failpoint < b.failpoint ? -1 : 1)))}

- *Lock lost*: somebody else was granted it, or the same Pod anew. In faults of operator, kubelet, containerd, API server and
  etcd the sidecars of about half of the holders concerned are killed too, so that something must be granted.
- *Ran past its lease*: programs whose last line came after the end of the lease by its last renewal; *beside the next
  grant*: after the next holder was granted the lock. No lease stops a process that was frozen, nor one whose sidecar is
  frozen, nor one whose kubelet or containerd is away when its sidecar dies. The guard refused all that they wrote.
- *Late writes without a guard* also come from programs that were dead by then: what they had sent before their network was
  cut arrived when it was healed.
- *Calm*: a holder whose writes are accepted, all others waiting, for four seconds; waited for 180 s. Of *healed → calm* a
  part is the lease itself (5 s) and the takeover delay (5 s).
- Not injected here: steps of the monotonic clock and clocks of other rates (in the simulation).

## Runs
| date | seed | commit | Kubernetes | minutes | locks × contenders | load, begin and end | faults | grants | gaps |
|---|---|---|---|---|---|---|---|---|---|
${runs
  .map(({ rows, ...run }) => {
    const count = rows.reduce((total, row) => total + row.faults, 0);
    return `| ${run.date} | ${run.seed} | ${run.commit} | ${run.kubernetes} | ${run.minutes} | ${run.locks} × ${run.contenders} | ${run.load.join(', ')} | ${count} | ${run.grants} | ${run.gaps} |`;
  })
  .join('\n')}

Minutes: from the start of the command to its report. Gaps: how often the harness may have missed revisions of Leases, locks and Pods, since a restarted API server no longer had
them. The tables in PostgreSQL have none.
${runs.flatMap(({ seed, note }) => (note === undefined ? [] : [`- Seed ${seed}: ${note}`])).join('\n')}
`;
}
