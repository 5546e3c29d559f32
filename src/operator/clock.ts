import type { Instant } from '../core/lease.ts';
import type { Now } from '../core/observed.ts';

/** This process's monotonic clock in milliseconds. It stands still while the machine sleeps: expiries come later, never earlier. */
export const instant = (): Instant => performance.now();

/** Wall clock in microseconds since 1970, in steps of 1,000. */
export const micros = (): bigint => BigInt(Date.now()) * 1000n;

export const now = (): Now => ({ instant: instant(), micros: micros() });
