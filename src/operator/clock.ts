import type { Instant } from '../core/lease.ts';
import type { Now } from '../core/observed.ts';
import { type Clock, systemClock } from '../leader-election/index.ts';

/** The clocks and timers of one operator process; whatever takes time takes them from here, so a simulation can drive it. */
export { type Clock, systemClock };

/** The process's monotonic clock in milliseconds. It stands still while the machine sleeps: expiries come later, never earlier. */
export const instant = (clock: Pick<Clock, 'monotonicSeconds'>): Instant => clock.monotonicSeconds() * 1000;

/** Wall clock in microseconds since 1970, on the system's clock in steps of 1,000. */
export const micros = (clock: Pick<Clock, 'wallMicroseconds'>): bigint => clock.wallMicroseconds();

export const now = (clock: Pick<Clock, 'monotonicSeconds' | 'wallMicroseconds'>): Now => ({
  instant: instant(clock),
  micros: micros(clock),
});
