import { describe, expect, test } from 'vitest';
import { step } from '../../src/core/holder.ts';
import { nextWake, requestTimeoutMs } from '../../src/core/holder-timing.ts';
import type { HolderState } from '../../src/core/holder-types.ts';
import { at, confirmed, granted, LEASE_MS, news, OTHER, observed, states, T1 } from './holder-fixtures.ts';

const gate = states('gate');
const standby = states('standby');
const ok = (id: number, revision = '102') =>
  ({ kind: 'wrote', id, result: { kind: 'ok', lease: observed({ revision, renewTime: T1 }) } }) as const;

/** Runs events one after another. */
function run(state: HolderState, ...events: readonly Parameters<typeof step>[1][]): HolderState {
  return events.reduce((current, event) => step(current, event).state, state);
}

const deadlineOf = (state: HolderState) => ('deadline' in state ? state.deadline : undefined);

describe('the deadline', () => {
  test('is 0.9 lease durations after the renewal was sent (apache/curator#980)', () => {
    const next = step(gate.holding, at(11_000, ok(7)));
    expect(next.state).toMatchObject({ renewedAt: 9800, deadline: 9800 + 13_500 });
  });

  test('does not count from the reply', () => {
    expect(deadlineOf(step(gate.holding, at(12_500, ok(7))).state)).toBe(9800 + 13_500);
  });

  test('is not moved by reads (fabric8io/kubernetes-client#2860)', () => {
    const seen = news(observed({ revision: '150', renewTime: '2026-01-01T00:01:00.000000Z' }));
    expect(deadlineOf(step(gate.holding, at(20_000, { kind: 'observed', observation: seen })).state)).toBe(22_500);
  });

  test('ends the grant when it is reached', () => {
    expect(step(gate.holding, at(22_500, { kind: 'tick' })).state).toMatchObject({
      kind: 'lost',
      reason: 'DeadlinePassed',
    });
  });

  test('does not end the grant one millisecond earlier', () => {
    expect(step(gate.holding, at(22_499, { kind: 'tick' })).state.kind).toBe('holding');
  });

  test('is acted on before a good reply that comes too late, as after SIGSTOP', () => {
    expect(step(gate.holding, at(22_500, ok(7))).state).toMatchObject({ kind: 'lost', reason: 'DeadlinePassed' });
  });

  test('is acted on before SIGTERM', () => {
    expect(step(gate.holding, at(30_000, { kind: 'terminated' })).state).toMatchObject({ reason: 'DeadlinePassed' });
  });

  test('is the duration of the grant, not a new one that the lock asks for', () => {
    const reply = { kind: 'ok', lease: observed({ revision: '102', renewTime: T1, seconds: 60 }) } as const;
    expect(deadlineOf(step(gate.holding, at(10_000, { kind: 'wrote', id: 7, result: reply })).state)).toBe(
      9800 + 13_500,
    );
  });
});

describe('confirming', () => {
  test('gives the token only after the reply (fabric8io/kubernetes-client#7350)', () => {
    const seen = step(gate.waiting, at(5000, { kind: 'observed', observation: news(granted) }));
    expect(seen.effects).toEqual([{ kind: 'write', purpose: 'confirm', id: 8, lease: granted, timeoutMs: 3750 }]);
    expect(step(seen.state, at(5010, ok(8))).effects).toEqual([{ kind: 'writeFiles', token: 42n }]);
  });

  test('gives no token when the reply comes after the validity it brings (etcd-io/etcd#9921)', () => {
    const late = step(gate.confirming, at(22_500, ok(7)));
    expect(late.state.kind).toBe('confirming');
    expect(late.effects).toEqual([]);
  });

  test('gives the token one millisecond before that', () => {
    expect(step(gate.confirming, at(22_499, ok(7))).state.kind).toBe('opening');
  });

  test('is tried again after a reply that came too late, and counts from the new attempt', () => {
    const late = step(gate.confirming, at(22_500, ok(7))).state;
    const again = step(late, at(nextWake(late) ?? 0, { kind: 'tick' }));
    expect(again.effects).toMatchObject([{ kind: 'write', purpose: 'confirm', id: 8, lease: { revision: 102n } }]);
    expect(deadlineOf(step(again.state, at(23_100, ok(8, '103'))).state)).toBe((nextWake(late) ?? 0) + 13_500);
  });

  test('goes on when its lost reply shows itself as a conflict: it was written, and is still mine', () => {
    const conflicted = step(gate.confirming, at(9500, { kind: 'wrote', id: 7, result: { kind: 'conflict' } }));
    expect(conflicted.effects).toEqual([{ kind: 'read', timeoutMs: 3750 }]);
    const read = step(
      conflicted.state,
      at(9600, { kind: 'observed', observation: { ...news(confirmed), requestedAt: 9500 } }),
    );
    expect(read.effects).toMatchObject([{ kind: 'write', purpose: 'confirm', lease: { revision: 101n } }]);
  });

  test('adopts an unconfirmed grant at the first read', () => {
    const started = run(gate.starting, at(0, { kind: 'started', epoch: 'fresh' }));
    const seen = step(started, at(50, { kind: 'observed', observation: { ...news(granted), requestedAt: 10 } }));
    expect(seen.state.kind).toBe('confirming');
  });

  test('releases a confirmed one at once: its programs are dead', () => {
    const started = run(gate.starting, at(0, { kind: 'started', epoch: 'fresh' }));
    const seen = step(started, at(50, { kind: 'observed', observation: { ...news(confirmed), requestedAt: 10 } }));
    expect(seen.effects).toMatchObject([{ kind: 'write', purpose: 'release' }]);
  });

  test('does not confirm a garbled grant', () => {
    const seen = news(observed({ token: '+5' }));
    expect(step(gate.waiting, at(9500, { kind: 'observed', observation: seen })).effects).toEqual([]);
  });
});

describe('a conflict', () => {
  const conflicted = run(gate.holding, at(10_000, { kind: 'wrote', id: 7, result: { kind: 'conflict' } }));

  test('is followed by a renewal when the read shows the same grant', () => {
    const seen = { ...news(observed({ revision: '110', renewTime: T1 })), requestedAt: 10_000 };
    const next = step(conflicted, at(10_100, { kind: 'observed', observation: seen }));
    expect(next.effects).toMatchObject([{ kind: 'write', purpose: 'renew', lease: { revision: 110n } }]);
  });

  test('ends the grant when the read shows another holder (kubernetes/kubernetes#23731)', () => {
    const seen = { ...news(observed({ revision: '110', holder: OTHER })), requestedAt: 10_000 };
    expect(step(conflicted, at(10_100, { kind: 'observed', observation: seen })).state).toMatchObject({
      reason: 'HolderChanged',
    });
  });

  test('ends the grant when the read shows me with another token', () => {
    const seen = { ...news(observed({ revision: '110', token: '50', acquireTime: T1 })), requestedAt: 10_000 };
    expect(step(conflicted, at(10_100, { kind: 'observed', observation: seen })).state).toMatchObject({
      reason: 'GrantChanged',
    });
  });

  test('is tried again after a rest when the read fails', () => {
    const rested = run(conflicted, at(10_100, { kind: 'readFailed' }));
    expect(nextWake(rested)).toBe(10_100 + LEASE_MS / 30);
  });

  test('that repeats is followed by a rest, not by a storm', () => {
    const seen = (revision: string) => ({ ...news(observed({ revision, renewTime: T1 })), requestedAt: 12_000 });
    const again = run(
      conflicted,
      at(10_100, { kind: 'observed', observation: { ...seen('110'), requestedAt: 10_000 } }),
      at(10_200, { kind: 'wrote', id: 8, result: { kind: 'conflict' } }),
    );
    const next = step(again, at(12_100, { kind: 'observed', observation: seen('111') }));
    expect(next.effects).toEqual([]);
    expect(nextWake(next.state)).toBe(12_100 + LEASE_MS / 15);
  });
});

describe('a failed renewal', () => {
  test('is retried until the deadline, at least twice when each try runs into its timeout', () => {
    const resting = { kind: 'resting', until: 14_000, failures: 0 } as const;
    let state: HolderState = { ...gate.holding, attempt: resting };
    let tries = 0;
    for (let now = 14_000; ; now = nextWake(state) ?? Infinity) {
      const sent = step(state, { kind: 'tick', now, jitter: 0.999 });
      if (sent.state.kind !== 'holding') break;
      expect(sent.effects).toHaveLength(1);
      const replyAt = now + requestTimeoutMs(LEASE_MS);
      const timedOut = { kind: 'wrote', id: sent.state.writes, result: { kind: 'timedOut' } } as const;
      const after = step(sent.state, { ...timedOut, now: Math.min(replyAt, 22_500), jitter: 0.999 });
      if (replyAt < 22_500) tries += 1;
      if (after.state.kind !== 'holding') break;
      state = after.state;
    }
    expect(tries).toBeGreaterThanOrEqual(2);
  });

  test('does not make a read: silence says nothing about the Lease', () => {
    expect(step(gate.holding, at(10_000, { kind: 'wrote', id: 7, result: { kind: 'timedOut' } })).effects).toEqual([]);
  });

  test('never waits longer than a tenth of the lease for the next try', () => {
    let state: HolderState = gate.holding;
    for (let failures = 1; failures < 20; failures += 1) {
      state = step(
        { ...gate.holding, attempt: { kind: 'writing', id: 7, sentAt: 9800, failures } },
        {
          kind: 'wrote',
          id: 7,
          result: { kind: 'failed' },
          now: 10_000,
          jitter: 0.999,
        },
      ).state;
      expect(nextWake(state)).toBeLessThanOrEqual(10_000 + LEASE_MS / 10);
    }
  });
});

describe('old news', () => {
  test('of a watch do not end a grant', () => {
    const stale = news(observed({ revision: '99', holder: '' }));
    expect(step(gate.holding, at(10_000, { kind: 'observed', observation: stale })).state.kind).toBe('holding');
  });

  test('of a read that a write overtook do not end a grant', () => {
    const stale = { ...news(observed({ revision: '99', holder: '' })), requestedAt: 9400 };
    expect(step(gate.holding, at(10_000, { kind: 'observed', observation: stale })).state.kind).toBe('holding');
  });

  test('are news when the read was sent later: the revision fell (kubernetes/kubernetes#107457)', () => {
    const restored = { ...news(observed({ revision: '50', holder: '' })), requestedAt: 9600 };
    expect(step(gate.holding, at(10_000, { kind: 'observed', observation: restored })).state.kind).toBe('lost');
  });
});

describe('the reply to an earlier write', () => {
  test('moves no deadline, however good it is', () => {
    expect(step(gate.holding, at(10_000, ok(6))).state).toMatchObject({
      deadline: 22_500,
      attempt: gate.holding.attempt,
    });
  });

  test('that failed changes nothing', () => {
    const failed = at(10_000, { kind: 'wrote', id: 6, result: { kind: 'failed' } });
    expect(step(gate.holding, failed)).toEqual({ state: gate.holding, effects: [] });
    expect(step(gate.confirming, failed)).toEqual({ state: gate.confirming, effects: [] });
  });

  test('that shows the loss of the grant ends it', () => {
    const lease = observed({ revision: '130', holder: OTHER });
    const reply = at(10_000, { kind: 'wrote', id: 6, result: { kind: 'ok', lease } });
    expect(step(gate.holding, reply).state).toMatchObject({ kind: 'lost', reason: 'HolderChanged' });
  });
});

test('a reply that a watch overtook does not take the newer Lease away', () => {
  const newer = run(
    gate.holding,
    at(9900, { kind: 'observed', observation: news(observed({ revision: '140', renewTime: T1 })) }),
  );
  const after = step(newer, at(10_000, ok(7, '139')));
  expect(after.state).toMatchObject({ deadline: 9800 + 13_500, seen: { revision: 140n } });
});

test('a read that waits and brings old news is tried again after a rest', () => {
  const reading = run(gate.holding, at(10_000, { kind: 'wrote', id: 7, result: { kind: 'conflict' } }));
  const stale = { ...news(observed({ revision: '99', holder: '' })), requestedAt: 9000 };
  expect(nextWake(run(reading, at(10_100, { kind: 'observed', observation: stale })))).toBe(10_100 + LEASE_MS / 30);
});

describe('standby', () => {
  test('is told at 0.7 lease durations when renewals fail, and the files go first', () => {
    const told = step(standby.holding, at(19_500, { kind: 'tick' }));
    expect(told.state).toMatchObject({ kind: 'losing', reason: 'DeadlinePassed', stopAt: 22_500 });
    expect(told.effects.map(({ kind }) => kind)).toEqual(['removeFiles', 'tell']);
  });

  test('is not told one millisecond earlier', () => {
    expect(step(standby.holding, at(19_499, { kind: 'tick' })).state.kind).toBe('holding');
  });

  test('is restarted at 0.9 lease durations', () => {
    const told = run(standby.holding, at(19_500, { kind: 'tick' }));
    expect(step(told, at(22_500, { kind: 'tick' })).effects.at(-1)).toMatchObject({ kind: 'exit' });
  });

  test('is not restarted when it has stood down: it gives back and waits again', () => {
    const told = run(standby.holding, at(19_500, { kind: 'tick' }));
    const stood = step(told, at(20_000, { kind: 'stoodDown' }));
    expect(stood.effects).toMatchObject([
      { kind: 'removeFiles' },
      { kind: 'tell' },
      { kind: 'write', purpose: 'release' },
    ]);
    const after = run(
      stood.state,
      at(60_000, { kind: 'tick' }),
      at(60_001, { kind: 'observed', observation: news(observed({ revision: '130', holder: OTHER })) }),
    );
    expect(after.kind).toBe('waiting');
  });

  test('stands down without a write when another holds already', () => {
    const told = run(
      standby.holding,
      at(12_000, { kind: 'observed', observation: news(observed({ revision: '110', holder: OTHER })) }),
    );
    expect(told).toMatchObject({ kind: 'losing', reason: 'HolderChanged', stopAt: 15_000 });
    const stood = step(told, at(12_500, { kind: 'stoodDown' }));
    expect(stood.state.kind).toBe('waiting');
    expect(stood.effects).toEqual([{ kind: 'removeFiles' }, { kind: 'tell' }]);
  });

  test('stays told when a renewal succeeds afterwards: a lapse of validity asks for a new grant', () => {
    const told = run(
      { ...standby.holding, attempt: { kind: 'writing', id: 7, sentAt: 19_000, failures: 1 } },
      at(19_500, { kind: 'tick' }),
    );
    expect(step(told, at(19_600, ok(7))).state).toMatchObject({ kind: 'losing', stopAt: 22_500 });
  });

  test('takes a new grant after it has stood down, not before', () => {
    const regrant = news(observed({ revision: '120', token: '43', acquireTime: T1 }));
    const told = run(
      standby.holding,
      at(19_500, { kind: 'tick' }),
      at(19_600, { kind: 'observed', observation: regrant }),
    );
    expect(told.kind).toBe('losing');
    const stood = step(told, at(20_000, { kind: 'stoodDown' }));
    expect(stood.state).toMatchObject({ kind: 'confirming', grant: { token: 43n } });
  });

  test('yields by removing the files before it releases', () => {
    const yielded = step(standby.holding, at(10_000, { kind: 'releaseAsked' }));
    expect(yielded.effects.map(({ kind }) => kind)).toEqual(['removeFiles', 'tell', 'write']);
  });

  test('goes on in gate mode when asked to release', () => {
    expect(step(gate.holding, at(10_000, { kind: 'releaseAsked' }))).toEqual({ state: gate.holding, effects: [] });
  });

  test('campaigns again after each of 1,000 rounds of loss (fabric8io/kubernetes-client#6020)', () => {
    let state: HolderState = standby.waiting;
    for (let round = 1; round <= 1000; round += 1) {
      const now = round * 100_000;
      const token = String(1000 + round);
      const lease = (revision: number, renewTime?: string) =>
        observed({
          revision: String(round * 10 + 1000 + revision),
          token,
          ...(renewTime === undefined ? {} : { renewTime }),
        });
      state = run(state, at(now, { kind: 'observed', observation: news(lease(0)) }));
      state = run(
        state,
        at(now + 10, { kind: 'wrote', id: state.writes, result: { kind: 'ok', lease: lease(1, T1) } }),
      );
      state = run(state, at(now + 11, { kind: 'filesWritten' }));
      expect(state).toMatchObject({ kind: 'holding', grant: { token: BigInt(token) } });
      const taken = news(observed({ revision: String(round * 10 + 1005), holder: OTHER }));
      state = run(state, at(now + 20, { kind: 'observed', observation: taken }), at(now + 30, { kind: 'stoodDown' }));
      expect(state.kind).toBe('waiting');
    }
  });
});

describe('files that cannot be written', () => {
  const failed = run(gate.opening, at(10_000, { kind: 'filesFailed' }));

  test('give the grant back and end the process with a counted loss', () => {
    expect(failed).toMatchObject({ kind: 'releasing', next: 'exit' });
    const released = { kind: 'ok', lease: observed({ revision: '103', holder: '', renewTime: T1 }) } as const;
    expect(step(failed, at(10_100, { kind: 'wrote', id: 8, result: released })).effects.at(-1)).toMatchObject({
      kind: 'exit',
      reason: 'FilesFailed',
      loss: { heldMs: 0 },
    });
  });

  test('end the process also when the release fails', () => {
    for (const kind of ['conflict', 'refused', 'failed', 'timedOut'] as const) {
      expect(step(failed, at(10_100, { kind: 'wrote', id: 8, result: { kind } })).state).toMatchObject({
        kind: 'lost',
        reason: 'FilesFailed',
      });
    }
  });

  test('never open the gate', () => {
    expect(step(failed, at(10_100, { kind: 'filesWritten' })).effects).toEqual([]);
  });
});

test('a loss says how long the lock was held', () => {
  expect(step(gate.holding, at(10_000, { kind: 'terminated' })).effects.at(-1)).toEqual({
    kind: 'exit',
    reason: 'Terminated',
    loss: { token: 42n, heldMs: 6000 },
  });
});

test.each([
  [
    'a hand-over that was planned counts as the end of a long hold, so that nothing is backed off from',
    'MaxHold',
    600_000,
  ],
  ['one because no program started counts as it was', 'NotStarted', 6000],
])('%s', (_, reason, heldMs) => {
  const lease = observed({ revision: '102', renewTime: T1, yield: reason });
  const asked = at(10_000, { kind: 'observed', observation: news(lease) });
  expect(step(gate.holding, asked).effects.at(-1)).toEqual({
    kind: 'exit',
    reason: 'YieldAsked',
    loss: { token: 42n, heldMs },
  });
});
