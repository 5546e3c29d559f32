/** `onRenewalFailure: ContinueFenced`: the deadline does not stop the program. */
import { describe, expect, test } from 'vitest';
import { step } from '../../src/core/holder.ts';
import { nextWake } from '../../src/core/holder-timing.ts';
import type { HolderState } from '../../src/core/holder-types.ts';
import { at, FENCED, news, OTHER, observed, states, T1 } from './holder-fixtures.ts';

const holding = { ...states('gate').holding, grant: FENCED };
const { unrenewed } = states('gate');
const failed = (now: number, id: number) => at(now, { kind: 'wrote', id, result: { kind: 'failed' } });

/** Lets every write fail as soon as it is sent; when each was sent. */
function tryFor(from: HolderState, { until, leaseMs }: { readonly until: number; readonly leaseMs: number }): number[] {
  let state: HolderState = 'grant' in from ? { ...from, grant: { ...from.grant, leaseDurationMs: leaseMs } } : from;
  const sent: number[] = [];
  for (let now = nextWake(state) ?? until; now < until; now = nextWake(state) ?? until) {
    const next = step(state, { kind: 'tick', now, jitter: 0.99 });
    state = next.state;
    const write = next.effects.find(({ kind }) => kind === 'write');
    if (write?.kind !== 'write') throw new Error(`No write at ${now}`);
    sent.push(now);
    state = step(state, { ...failed(now, write.id), jitter: 0.99 }).state;
  }
  return sent;
}

const longestPause = (times: readonly number[]) =>
  Math.max(...times.slice(1).map((time, index) => time - (times[index] ?? 0)));

describe('a holder by ContinueFenced', () => {
  test('is told nothing before the deadline in standby mode', () => {
    const standby = { ...states('standby').holding, grant: FENCED };
    expect(step(standby, at(20_000, { kind: 'tick' }))).toEqual({ state: standby, effects: [] });
    expect(nextWake({ ...standby, attempt: { kind: 'resting', until: 99_999, failures: 1 } })).toBe(22_500);
  });

  test('keeps its files, its token and its grant past the deadline, and goes on trying', () => {
    const resting = { ...holding, attempt: { kind: 'resting', until: 22_000, failures: 9 } } as const;
    const { state, effects } = step(resting, at(22_500, { kind: 'tick' }));
    expect(state).toMatchObject({ kind: 'unrenewed', grant: FENCED, since: 22_500, heldSince: 4000 });
    expect(effects.map(({ kind }) => kind)).toEqual(['tell', 'note', 'write']);
    expect(effects[1]).toEqual({ kind: 'note', reason: 'Unrenewed', token: 42n, sinceRenewalMs: 13_500 });
  });

  test('is lost at once when the event that comes past the deadline shows another holder', () => {
    const news102 = news(observed({ revision: '102', holder: OTHER }));
    const { state, effects } = step(holding, at(99_000, { kind: 'observed', observation: news102 }));
    expect(state).toMatchObject({ kind: 'lost', reason: 'HolderChanged' });
    expect(effects.map(({ kind }) => kind)).toEqual(['removeFiles', 'tell', 'exit']);
  });

  test('is stopped by a deadline before its program was started', () => {
    const opening = { ...states('gate').opening, grant: FENCED };
    expect(step(opening, at(22_500, { kind: 'filesWritten' })).state).toMatchObject({ reason: 'DeadlinePassed' });
  });
});

describe('an unrenewed holder', () => {
  const ok = { kind: 'ok', lease: observed({ revision: '102', renewTime: T1 }) } as const;

  test('holds again from the moment at which the good renewal was sent', () => {
    const { state, effects } = step(unrenewed, at(10_000, { kind: 'wrote', id: 7, result: ok }));
    expect(state).toMatchObject({ kind: 'holding', renewedAt: 9800, deadline: 23_300, heldSince: 4000 });
    expect(state).not.toHaveProperty('since');
    expect(effects).toContainEqual({ kind: 'note', reason: 'Renewed', token: 42n, sinceRenewalMs: 19_500 });
  });

  test('stays so when the good reply came too late to be worth anything, and tries again', () => {
    const { state } = step(unrenewed, at(23_300, { kind: 'wrote', id: 7, result: ok }));
    expect(state).toMatchObject({ kind: 'unrenewed', attempt: { kind: 'resting' } });
  });

  test('is not made a holder again by what it reads', () => {
    const reading = { ...unrenewed, attempt: { kind: 'reading', failures: 1 } } as const;
    const own = { lease: observed({ revision: '102', renewTime: T1 }), revision: 102n, requestedAt: 9900 };
    const { state, effects } = step(reading, at(10_000, { kind: 'observed', observation: own }));
    expect(state.kind).toBe('unrenewed');
    expect(effects.map(({ kind }) => kind)).toEqual(['write']);
  });

  test.each([
    { leaseMs: 5000, longestMs: 2500 },
    { leaseMs: 15_000, longestMs: 7500 },
    { leaseMs: 3_600_000, longestMs: 45_000 },
  ])('of a lease of $leaseMs ms tries for ever, and rests at most $longestMs ms', ({ leaseMs, longestMs }) => {
    const resting = { ...unrenewed, attempt: { kind: 'resting', until: 10_000, failures: 3 } } as const;
    const times = tryFor(resting, { until: 100 * longestMs, leaseMs });
    expect(times.length).toBeGreaterThan(90);
    expect(longestPause(times)).toBeLessThanOrEqual(longestMs);
    expect(longestPause(times)).toBeGreaterThan(longestMs * 0.9);
  });

  test('in standby mode tells its program what it saw, and gives it a fifth of the lease', () => {
    const standby = states('standby').unrenewed;
    const { state } = step(
      standby,
      at(10_000, { kind: 'observed', observation: news(observed({ revision: '102', holder: OTHER })) }),
    );
    expect(state).toMatchObject({ kind: 'losing', reason: 'HolderChanged', stopAt: 13_000 });
    expect(step(state, at(12_999, { kind: 'tick' })).state.kind).toBe('losing');
    expect(step(state, at(13_000, { kind: 'tick' })).state).toMatchObject({ kind: 'lost', reason: 'HolderChanged' });
  });
});
