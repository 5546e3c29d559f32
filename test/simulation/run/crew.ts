import { Worker } from 'node:worker_threads';
import type { Order, Report } from './messages.ts';

const CHUNK = 25;

export interface CrewOptions {
  readonly from: number;
  readonly runs: number;
  readonly jobs: number;
  readonly mutation?: string | undefined;
  /** Ends the crew when something has failed. */
  readonly stopsAtFailure?: boolean;
  /** Shrinks what fails. @default true */
  readonly shrinks?: boolean;
  readonly reported?: (report: Report) => void;
}

/** Runs seeds on several threads. */
export async function runCrew(options: CrewOptions): Promise<readonly Report[]> {
  const { from, runs, jobs, mutation, stopsAtFailure = false, shrinks = true, reported } = options;
  const reports: Report[] = [];
  let next = from;
  let isOver = false;
  const work = () =>
    new Promise<void>((resolve, reject) => {
      const worker = new Worker(new URL('./worker.ts', import.meta.url), { workerData: { mutation }, execArgv: [] });
      // oxlint-disable-next-line unicorn/require-post-message-target-origin -- a thread, not a window
      const order = (message: Order) => worker.postMessage(message);
      const goOn = () => {
        if (isOver || next >= from + runs) return order({ kind: 'stop' });
        const count = Math.min(CHUNK, from + runs - next);
        order({ kind: 'run', from: next, count, stopsAtFailure, shrinks });
        next += count;
      };
      worker.on('message', (report: Report) => {
        reports.push(report);
        reported?.(report);
        if (stopsAtFailure && report.failures.length > 0) isOver = true;
        goOn();
      });
      worker.on('error', reject);
      worker.on('exit', () => resolve());
      goOn();
    });
  await Promise.all(Array.from({ length: Math.min(jobs, Math.ceil(runs / CHUNK)) }, work));
  return reports;
}

export interface Total {
  readonly runs: number;
  readonly events: number;
  readonly grants: number;
  readonly refused: number;
  readonly failures: Report['failures'];
}

export function total(reports: readonly Report[]): Total {
  const sum = (value: (report: Report) => number) => reports.reduce((all, report) => all + value(report), 0);
  return {
    runs: sum(({ runs }) => runs),
    events: sum(({ events }) => events),
    grants: sum(({ grants }) => grants),
    refused: sum(({ refused }) => refused),
    failures: reports.flatMap(({ failures }) => failures).toSorted((a, b) => a.seed - b.seed),
  };
}
