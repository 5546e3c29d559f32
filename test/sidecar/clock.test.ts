import { expect, test } from 'vitest';
import { createClock } from '../../src/sidecar/clock.ts';

function clockAt(readings: { monotonicMs: number; bootMs: number; wallMs: number }) {
  return createClock({
    monotonicMs: () => readings.monotonicMs,
    bootMs: () => readings.bootMs,
    wallMs: () => readings.wallMs,
  });
}

test('the clock runs with the monotonic one', () => {
  const readings = { monotonicMs: 1000, bootMs: 50_000, wallMs: 0 };
  const clock = clockAt(readings);
  readings.monotonicMs += 250;
  readings.bootMs += 240;
  expect(clock.now()).toBe(250);
});

test('the clock counts the time that the machine was suspended', () => {
  const readings = { monotonicMs: 1000, bootMs: 50_000, wallMs: 0 };
  const clock = clockAt(readings);
  readings.monotonicMs += 100;
  readings.bootMs += 30_100;
  expect(clock.now()).toBe(30_100);
  readings.monotonicMs += 5;
  expect(clock.now()).toBe(30_105);
});

test('the clock does not follow the wall clock (lukas-krecan/ShedLock#1241)', () => {
  const readings = { monotonicMs: 1000, bootMs: 50_000, wallMs: 1_000_000 };
  const clock = clockAt(readings);
  readings.wallMs -= 300_000;
  expect(clock.now()).toBe(0);
  expect(clock.wallMicros()).toBe(700_000_000n);
});

test('the clock never falls, also when the boot clock moves in steps', () => {
  const readings = { monotonicMs: 0, bootMs: 0, wallMs: 0 };
  const clock = clockAt(readings);
  let last = 0;
  for (let ms = 0; ms < 500; ms += 1) {
    readings.monotonicMs = ms;
    readings.bootMs = Math.floor(ms / 10) * 10 + (ms > 200 ? 1000 : 0);
    expect(clock.now()).toBeGreaterThanOrEqual(last);
    last = clock.now();
  }
  expect(last).toBeGreaterThanOrEqual(1490);
});

test('the real clock runs forward', async () => {
  const clock = createClock();
  const before = clock.now();
  await new Promise((wake) => setTimeout(wake, 30));
  expect(clock.now() - before).toBeGreaterThan(25);
  expect(clock.now() - before).toBeLessThan(2000);
});
