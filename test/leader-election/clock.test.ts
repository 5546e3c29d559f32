import { describe, expect, test } from 'vitest';
import { longestElapsedSeconds, readMoment, shortestElapsedSeconds, sleep } from '../../src/leader-election/clock.ts';
import { systemClock } from '../../src/leader-election/index.ts';

describe('elapsed', () => {
  const since = { monotonicSeconds: 10, bootSeconds: 100 };
  const now = { monotonicSeconds: 12, bootSeconds: 160 };

  test('is the longer of both clocks for a holder and the shorter for a waiter', () => {
    expect([longestElapsedSeconds(now, since), shortestElapsedSeconds(now, since)]).toEqual([60, 2]);
  });
});

describe('the clocks of this machine', () => {
  test('advance, in seconds, and agree about a short wait', async () => {
    const before = readMoment(systemClock);
    await sleep(systemClock, 0.03, new AbortController().signal);
    const elapsed = longestElapsedSeconds(readMoment(systemClock), before);
    expect(elapsed).toBeGreaterThan(0.025);
    expect(elapsed).toBeLessThan(10);
    expect(Math.abs(Number(systemClock.wallMicroseconds() / 1000n) - Date.now())).toBeLessThan(1000);
  });

  test('wake a sleeper when the signal aborts, and at once when it had aborted before', async () => {
    const stopping = new AbortController();
    const before = systemClock.monotonicSeconds();
    systemClock.setTimer(0.01, () => stopping.abort());
    await sleep(systemClock, 60, stopping.signal);
    await sleep(systemClock, 60, stopping.signal);
    expect(systemClock.monotonicSeconds() - before).toBeLessThan(30);
  });
});
