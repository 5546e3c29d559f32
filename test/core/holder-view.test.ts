import { describe, expect, test } from 'vitest';
import { refuseRelease, refuseStoodDown, viewOf } from '../../src/core/holder-view.ts';
import { FENCED, OTHER, states } from './holder-fixtures.ts';

const gate = states('gate');
const standby = states('standby');

describe('the view', () => {
  test('shows the token and the time left while held', () => {
    expect(viewOf(gate.holding, 10_000)).toEqual({ state: 'held', token: '42', expiresInSeconds: 12.5 });
  });

  test('shows neither from the deadline on (kubernetes-retired/contrib#690)', () => {
    expect(viewOf(gate.holding, 22_499)).toHaveProperty('token');
    expect(viewOf(gate.holding, 22_500)).toEqual({ state: 'lost', reason: 'DeadlinePassed' });
  });

  test('says unrenewed past the deadline by ContinueFenced, with the token and no time left', () => {
    const unrenewed = { state: 'unrenewed', token: '42', expiresInSeconds: 0 };
    const fenced = { ...gate.holding, grant: FENCED };
    expect(viewOf(fenced, 22_499).state).toBe('held');
    expect(viewOf(fenced, 22_500)).toEqual(unrenewed);
    expect(viewOf(gate.unrenewed, 1e9)).toEqual(unrenewed);
  });

  test('names the holder one waits for (argoproj/argo-workflows#14080)', () => {
    expect(viewOf(gate.waiting, 10_000)).toEqual({ state: 'waiting', holder: OTHER });
  });

  test('does not show a grant that is not confirmed', () => {
    expect(viewOf(gate.confirming, 10_000)).toEqual({ state: 'waiting' });
    expect(viewOf(gate.opening, 10_000)).toEqual({ state: 'waiting' });
  });

  test('shows until when a program has to stop', () => {
    expect(viewOf(standby.losing, 20_000)).toEqual({ state: 'losing', reason: 'DeadlinePassed', stopInSeconds: 2.5 });
    expect(viewOf(standby.losing, 22_500)).toEqual({ state: 'lost', reason: 'DeadlinePassed' });
  });
});

describe('a request to release', () => {
  test('is granted in standby mode while held, and after being told', () => {
    expect(refuseRelease(standby.holding, 10_000)).toBeUndefined();
    expect(refuseRelease(standby.losing, 10_000)).toBeUndefined();
  });

  test('is refused in gate mode', () => {
    expect(refuseRelease(gate.holding, 10_000)).toEqual({
      code: 'GateMode',
      message: expect.stringContaining('set kilit.dev/mode: standby in the Pod template and create the Pod anew'),
    });
  });

  test('is refused while waiting, past the deadline and when lost', () => {
    expect(refuseRelease(standby.waiting, 10_000)?.code).toBe('NotHeld');
    expect(refuseRelease(standby.holding, 22_500)?.code).toBe('Lost');
    expect(refuseRelease(standby.lost, 10_000)?.code).toBe('Lost');
  });
});

describe('an unrenewed program in standby mode', () => {
  test('may release, or say that it has stood down', () => {
    expect(refuseRelease(standby.unrenewed, 1e9)).toBeUndefined();
    expect(refuseStoodDown(standby.unrenewed, 1e9)).toBeUndefined();
  });
});

describe('the word that a program has stood down', () => {
  test('is taken after it was told, and again while waiting', () => {
    expect(refuseStoodDown(standby.losing, 10_000)).toBeUndefined();
    expect(refuseStoodDown(standby.waiting, 10_000)).toBeUndefined();
  });

  test('is refused while the lock is held, in gate mode, and when it comes too late', () => {
    expect(refuseStoodDown(standby.holding, 10_000)?.code).toBe('StillHeld');
    expect(refuseStoodDown(gate.holding, 10_000)?.code).toBe('GateMode');
    expect(refuseStoodDown(standby.losing, 22_500)?.code).toBe('Lost');
  });
});
