import type { Instant } from '../core/lease.ts';
import { type SetTimer, sleep } from './timer.ts';

export interface PausePorts {
  readonly now: () => Instant;
  readonly setTimer: SetTimer;
  /** In [0, 1). */
  readonly random: () => number;
  /** The grant that the kubelet shows in a file of the Pod, `''` for none. It needs no right to read the Lease. */
  readonly sign: () => string;
  readonly signal: AbortSignal;
}

export interface PauseTimings {
  readonly firstRetryMs: number;
  /** With its jitter below the shortest confirm window (5 s): a grant just after RBAC came must not be missed. */
  readonly longestRetryMs: number;
  /** Forbidden for this long, it asks seldom: nobody has created the lock, and it may stay so for days. */
  readonly patientAfterMs: number;
  readonly patientRetryMs: number;
  /** How often a pause looks for the sign of a grant. */
  readonly napMs: number;
}

export const PAUSE_TIMINGS: PauseTimings = {
  firstRetryMs: 250,
  longestRetryMs: 2000,
  patientAfterMs: 60_000,
  patientRetryMs: 30_000,
  napMs: 1000,
};

/** The pauses between two tries to read: each twice as long as the one before, up to a bound, times 0.5 to 1.5. */
export interface Pauses {
  pause(why?: 'forbidden' | 'failed'): Promise<void>;
  /** Reading works again: the next pause is the first. */
  worked(): void;
}

/**
 * Makes pauses that a new sign of a grant ends at once.
 *
 * The sign is what makes long pauses harmless: a grant has to be confirmed within 5 to 10 s, and its token is in the
 * Pod's annotations, and by the kubelet in `/etc/kilit/token`, within about a second.
 */
export function createPauses(ports: PausePorts, timings: PauseTimings): Pauses {
  const { now, setTimer, random, sign, signal } = ports;
  let failures = 0;
  let forbiddenSince: Instant | undefined;
  let known = sign();
  return {
    async pause(why) {
      forbiddenSince = why === 'forbidden' ? (forbiddenSince ?? now()) : undefined;
      const isPatient = forbiddenSince !== undefined && now() - forbiddenSince >= timings.patientAfterMs;
      const doubled = Math.min(timings.firstRetryMs * 2 ** Math.min(failures, 10), timings.longestRetryMs);
      const until = now() + (isPatient ? timings.patientRetryMs : doubled) * (0.5 + random());
      failures += 1;
      for (let leftMs = until - now(); leftMs > 0 && !signal.aborted && sign() === known; leftMs = until - now()) {
        await sleep(setTimer, Math.min(leftMs, timings.napMs), signal);
      }
      if (sign() === known) return;
      known = sign();
      failures = 0;
      forbiddenSince = undefined;
    },
    worked() {
      failures = 0;
    },
  };
}
