/** A sidecar across a restore of etcd: the Lease is what it once was, at a lower revision. */
import { describe, expect, test } from 'vitest';
import { step } from '../../src/core/holder.ts';
import type { ObservedLease } from '../../src/core/holder-lease.ts';
import type { HolderEvent, HolderState, LossReason, Step } from '../../src/core/holder-types.ts';
import { at, ME, NOW, news, OTHER, observed, states, T0, T1 } from './holder-fixtures.ts';

/** Long before what the holder has seen, revision 101. */
const restored = (parts: Parameters<typeof observed>[0]) => observed({ revision: '60', ...parts });

const read = (lease: ObservedLease | undefined, sentAt: number, revision = lease?.revision ?? 60n): HolderEvent =>
  at(sentAt + 5, { kind: 'observed', observation: { lease, revision, requestedAt: sentAt } });

/** The renewal that is on its way carries the revision of before, so the API server refuses it, and it is read. */
function refused(mode: 'gate' | 'standby' = 'gate'): Step {
  return step(states(mode).holding, at(NOW, { kind: 'wrote', id: 7, result: { kind: 'conflict' } }));
}

const afterRead = (lease: ObservedLease | undefined): Step => step(refused().state, read(lease, NOW + 1));

const outcome = ({ state }: Step): HolderState['kind'] | LossReason =>
  state.kind === 'lost' ? state.reason : state.kind;

describe('a holder whose Lease was restored', () => {
  test('reads it when its renewal is refused', () => {
    expect(refused().effects.map(({ kind }) => kind)).toEqual(['read']);
  });

  test.each<[string, ObservedLease | undefined, LossReason]>([
    ['another holder', restored({ holder: OTHER, token: '30', renewTime: T1 }), 'HolderChanged'],
    ['nobody', restored({ holder: '' }), 'HolderChanged'],
    ['an earlier grant to the same Pod', restored({ token: '30', acquireTime: T1 }), 'GrantChanged'],
    ['no Lease', undefined, 'LeaseDeleted'],
  ])('loses when the restored state has %s', (_name, lease, reason) => {
    expect(outcome(afterRead(lease))).toBe(reason);
  });

  test('is told first in standby mode', () => {
    const told = step(refused('standby').state, read(restored({ holder: OTHER }), NOW + 1));
    expect(told.state).toMatchObject({ kind: 'losing', reason: 'HolderChanged' });
  });

  test('keeps its grant, and its deadline, when the restored state has the same grant', () => {
    const lease = restored({ renewTime: T1 });
    const { state, effects } = afterRead(lease);
    expect(state).toMatchObject({ kind: 'holding', deadline: 22_500, seen: { revision: 60n } });
    expect(effects).toMatchObject([{ kind: 'write', purpose: 'renew', lease }]);
  });

  test('goes on renewing at the lower revision', () => {
    const { state } = afterRead(restored({ renewTime: T1 }));
    const renewed = observed({ revision: '61', renewTime: '2026-01-01T00:00:06.000000Z' });
    const { state: next } = step(state, at(NOW + 50, { kind: 'wrote', id: 8, result: { kind: 'ok', lease: renewed } }));
    expect(next).toMatchObject({ kind: 'holding', deadline: NOW + 6 + 13_500, seen: { revision: 61n } });
  });

  test('loses by the watch, too, once a read has shown the lower revision', () => {
    const { state } = afterRead(restored({ renewTime: T1 }));
    const passed = news(observed({ revision: '62', holder: OTHER, token: '70' }));
    expect(outcome(step(state, at(NOW + 60, { kind: 'observed', observation: passed })))).toBe('HolderChanged');
  });

  test('does not lose by a lower revision that a watch brings: it may lag', () => {
    const late = news(restored({ holder: OTHER }));
    expect(outcome(step(states('gate').holding, at(NOW, { kind: 'observed', observation: late })))).toBe('holding');
  });

  test('does not lose by a read that was sent before its last news, and overtaken', () => {
    const overtaken = read(restored({ holder: OTHER }), 9400);
    expect(outcome(step(states('gate').holding, { ...overtaken, now: NOW }))).toBe('holding');
  });

  test('loses by its deadline when nothing at all is heard', () => {
    expect(outcome(step(refused().state, at(22_500, { kind: 'tick' })))).toBe('DeadlinePassed');
  });
});

describe('a waiter whose Lease was restored', () => {
  const granted = news(observed({ revision: '70', token: '200', acquireTime: T0 }));

  test('confirms a grant of a lower revision after a list has found no Lease', () => {
    const { state } = step(states('gate').waiting, read(undefined, NOW));
    const { state: next } = step(state, at(NOW + 50, { kind: 'observed', observation: granted }));
    expect(next).toMatchObject({ kind: 'confirming', grant: { token: 200n } });
  });

  test('does not take that for news before the list', () => {
    expect(outcome(step(states('gate').waiting, at(NOW, { kind: 'observed', observation: granted })))).toBe('waiting');
  });

  test('gives back a grant that it has had and lost: those programs are dead', () => {
    const { state, effects } = step(states('gate').waiting, read(restored({ holder: ME, renewTime: T1 }), NOW));
    expect(state.kind).toBe('releasing');
    expect(effects).toMatchObject([{ kind: 'write', purpose: 'release' }]);
  });
});
