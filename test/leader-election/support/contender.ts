import {
  createLeaderElector,
  type ElectionObserver,
  type ElectionOptions,
  type ElectionOutcome,
  type LeaderElector,
  type Leading,
} from '../../../src/leader-election/index.ts';
import type { FakeApiServer, Fate, Verb } from './fake-api-server.ts';
import { createMachine, type Machine } from './machine.ts';
import type { VirtualTime } from './virtual-time.ts';

const noDrain = (): number => 0;
const quiet = { debug() {}, info() {}, warn() {} };

/** A program that stands for election again and again until it is told to stop. */
export interface Contender {
  readonly name: string;
  readonly machine: Machine;
  readonly elector: LeaderElector;
  /** Each end of a run, or what it threw. */
  readonly outcomes: (ElectionOutcome | Error)[];
  /** With which acquireTime each work was started. */
  readonly acquireTimes: string[];
  /** How many times the work was started. */
  terms(): number;
  isWorking(): boolean;
  /** The reason with which the work was told to stop last. */
  stopReason(): unknown;
  /** Ends the present work without a signal. */
  finishWork(): void;
  /** Does nothing while it stands already. */
  start(): void;
  stop(): void;
}

export interface ContenderOptions extends Partial<ElectionOptions> {
  readonly name: string;
  readonly rate?: number;
  readonly random?: () => number;
  readonly fate: (verb: Verb) => Fate;
  /** How long the work takes to end after it was told to, in seconds. */
  readonly drainSeconds?: () => number;
  readonly observer?: ElectionObserver;
  /** Whether to stand again after a loss or an end. */
  readonly standsAgain?: boolean;
}

export function createContender(time: VirtualTime, server: FakeApiServer, options: ContenderOptions): Contender {
  const { name, rate = 1, random = () => 0.5, fate, drainSeconds = noDrain, observer, standsAgain = true } = options;
  const { leaseDurationSeconds, renewDeadlineSeconds, retryPeriodSeconds, stopTimeoutSeconds } = options;
  const machine = createMachine(time, { rate, random });
  const store = server.storeFor(name, machine, fate);
  const elector = createLeaderElector(
    { store, clock: machine.clock, random, log: quiet, ...(observer && { observer }) },
    {
      identity: options.identity ?? name,
      ...(leaseDurationSeconds && { leaseDurationSeconds }),
      ...(renewDeadlineSeconds && { renewDeadlineSeconds }),
      ...(retryPeriodSeconds && { retryPeriodSeconds }),
      ...(stopTimeoutSeconds && { stopTimeoutSeconds }),
    },
  );
  const outcomes: (ElectionOutcome | Error)[] = [];
  const acquireTimes: string[] = [];
  let stopping = new AbortController();
  let terms = 0;
  let isWorking = false;
  let isStanding = false;
  let stopReason: unknown;
  let finish = () => {};

  async function work({ signal, acquireTime }: Leading): Promise<void> {
    acquireTimes.push(acquireTime);
    terms += 1;
    isWorking = true;
    await new Promise<void>((resolve) => {
      finish = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    stopReason = signal.reason;
    const seconds = drainSeconds();
    if (seconds > 0) await new Promise<void>((resolve) => machine.clock.setTimer(seconds, resolve));
    isWorking = false;
  }

  const mayStandAgain = (signal: AbortSignal) => standsAgain && !signal.aborted;

  async function stand(signal: AbortSignal): Promise<void> {
    isStanding = true;
    try {
      do outcomes.push(await elector.run(signal, work));
      while (mayStandAgain(signal));
    } catch (err) {
      outcomes.push(err as Error);
    }
    isStanding = false;
  }

  return {
    name,
    machine,
    elector,
    outcomes,
    acquireTimes,
    terms: () => terms,
    isWorking: () => isWorking,
    stopReason: () => stopReason,
    finishWork: () => finish(),
    start() {
      if (isStanding) return;
      stopping = new AbortController();
      void stand(stopping.signal);
    },
    stop: () => stopping.abort(new Error('SIGTERM')),
  };
}
