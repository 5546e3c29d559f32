import { uptime } from 'node:os';
import { performance } from 'node:perf_hooks';

/** Time and timers, injected so that tests need no real waiting. */
export interface Clock {
  /** Seconds on a clock that never steps. It may stand still while the machine is suspended. */
  monotonicSeconds(): number;
  /** Seconds since boot, suspended time included. */
  bootSeconds(): number;
  /** Microseconds since 1970. Written into the Lease for people to read; no decision uses it. */
  wallMicroseconds(): bigint;
  /** Calls `fire` once, after `seconds` or later. Returns what cancels it. */
  setTimer(seconds: number, fire: () => void): () => void;
}

/** A reading of both clocks of this process. Never compared across processes. */
export interface Moment {
  readonly monotonicSeconds: number;
  readonly bootSeconds: number;
}

export function readMoment(clock: Pick<Clock, 'monotonicSeconds' | 'bootSeconds'>): Moment {
  return { monotonicSeconds: clock.monotonicSeconds(), bootSeconds: clock.bootSeconds() };
}

/** The longer of both clocks' answers: how a holder reckons, which must never stop too late. */
export function longestElapsedSeconds(now: Moment, since: Moment): number {
  return Math.max(now.monotonicSeconds - since.monotonicSeconds, now.bootSeconds - since.bootSeconds);
}

/** The shorter of both clocks' answers: how a waiter reckons, which must never take over too early. */
export function shortestElapsedSeconds(now: Moment, since: Moment): number {
  return Math.min(now.monotonicSeconds - since.monotonicSeconds, now.bootSeconds - since.bootSeconds);
}

/** The clocks of this machine. `os.uptime()` includes suspended time; it advances in steps of 10 ms on Linux. */
export const systemClock: Clock = {
  monotonicSeconds: () => performance.now() / 1000,
  bootSeconds: () => uptime(),
  wallMicroseconds: () => BigInt(Date.now()) * 1000n,
  setTimer(seconds, fire) {
    const timer = setTimeout(fire, Math.min(seconds * 1000, LONGEST_TIMER_MS));
    return () => clearTimeout(timer);
  },
};

/** `setTimeout` fires at once above this. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Resolves after `seconds`, or as soon as `signal` aborts. */
export function sleep(clock: Clock, seconds: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted || seconds <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    const wake = () => {
      cancel();
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const cancel = clock.setTimer(seconds, wake);
    signal.addEventListener('abort', wake, { once: true });
  });
}
