import { uptime } from 'node:os';
import type { Instant } from '../core/lease.ts';

export interface Clock {
  /** Milliseconds since the process started, suspended time included. Never falls. */
  readonly now: () => Instant;
  /** Microseconds since 1970, by the wall clock: written into objects for people, compared with nothing. */
  readonly wallMicros: () => bigint;
}

/**
 * The larger elapsed time of two clocks: the monotonic one stands still while the machine is suspended, `os.uptime()`
 * counts that but moves in steps of 10 ms. So the monotonic one runs, and is moved on when the other got ahead.
 */
export function createClock(sources: ClockSources = SYSTEM): Clock {
  const startedAt = sources.monotonicMs();
  const bootedAt = sources.bootMs();
  let suspendedMs = 0;
  return {
    now() {
      const elapsed = sources.monotonicMs() - startedAt;
      suspendedMs = Math.max(suspendedMs, sources.bootMs() - bootedAt - elapsed);
      return elapsed + suspendedMs;
    },
    wallMicros: () => BigInt(Math.max(0, sources.wallMs())) * 1000n,
  };
}

export interface ClockSources {
  readonly monotonicMs: () => number;
  readonly bootMs: () => number;
  readonly wallMs: () => number;
}

const SYSTEM: ClockSources = {
  monotonicMs: () => performance.now(),
  bootMs: () => uptime() * 1000,
  wallMs: () => Date.now(),
};
