import fc from 'fast-check';
import { expect, test } from 'vitest';
import { initialState, step } from '../../src/core/holder.ts';
import { deadlineAt, nextWake } from '../../src/core/holder-timing.ts';
import type { Effect, HolderEvent, HolderState, Mode } from '../../src/core/holder-types.ts';
import { viewOf } from '../../src/core/holder-view.ts';
import { ME, OTHER, observed, T0, T1 } from './holder-fixtures.ts';

/**
 * Histories of arbitrary events, also impossible ones: the machine must be safe in all of them.
 * A failure prints its seed and path.
 */
const leases = fc
  .record({
    holder: fc.constantFrom(ME, ME, ME, OTHER, ''),
    token: fc.constantFrom('42', '43', '007'),
    acquireTime: fc.constantFrom(T0, T1),
    renewTime: fc.constantFrom(T0, T1),
    revision: fc.integer({ min: 1, max: 50 }).map(String),
    seconds: fc.constantFrom(1, 15),
    onRenewalFailure: fc.constantFrom('ContinueFenced', 'Stop', ''),
    yield: fc.constantFrom(undefined, undefined, undefined, 'MaxHold'),
  })
  .map(({ yield: asked, ...parts }) => observed({ ...parts, ...(asked !== undefined && { yield: asked }) }));

type Draft = (state: HolderState, now: number) => Omit<HolderEvent, 'now' | 'jitter'>;

const currentId = (state: HolderState) =>
  'attempt' in state && state.attempt.kind === 'writing' ? state.attempt.id : 0;
/** A good reply as an honest server gives it: the Lease of the known grant, renewed. */
const goodReply: Draft = (state) => {
  const grant = 'grant' in state ? state.grant : undefined;
  const lease = observed({
    token: String(grant?.token ?? 42n),
    acquireTime: grant?.acquireTime ?? T0,
    renewTime: '2026-01-01T00:00:09.000000Z',
    revision: String((state.seen?.revision ?? 0n) + 1n),
  });
  return { kind: 'wrote', id: currentId(state), result: { kind: 'ok', lease } };
};

const drafts: fc.Arbitrary<Draft> = fc.oneof(
  { weight: 5, arbitrary: fc.constant(goodReply) },
  {
    weight: 4,
    arbitrary: leases.map(
      (lease): Draft =>
        () => ({ kind: 'observed', observation: { lease, revision: lease.revision, requestedAt: undefined } }),
    ),
  },
  {
    weight: 2,
    arbitrary: leases.map(
      (lease): Draft =>
        (_state, now) => ({ kind: 'observed', observation: { lease, revision: lease.revision, requestedAt: now } }),
    ),
  },
  fc.constant<Draft>((_state, now) => ({
    kind: 'observed',
    observation: { lease: undefined, revision: undefined, requestedAt: now },
  })),
  {
    weight: 2,
    arbitrary: fc.constantFrom('conflict', 'refused', 'failed', 'timedOut').map(
      (kind): Draft =>
        (state) => ({ kind: 'wrote', id: currentId(state), result: { kind } }),
    ),
  },
  leases.map(
    (lease): Draft =>
      (state) => ({ kind: 'wrote', id: currentId(state), result: { kind: 'ok', lease } }),
  ),
  {
    weight: 4,
    arbitrary: fc.constantFrom('filesWritten', 'tick', 'tick', 'readFailed').map(
      (kind): Draft =>
        () => ({ kind }),
    ),
  },
  fc.constantFrom('filesFailed', 'terminated', 'releaseAsked', 'stoodDown', 'crashed').map(
    (kind): Draft =>
      () => ({ kind }),
  ),
);

const histories = fc.record({
  mode: fc.constantFrom<Mode>('gate', 'standby'),
  moves: fc.array(
    fc.record({
      draft: drafts,
      pauseMs: fc.constantFrom(0, 1, 100, 1000, 5000, 20_000),
      jitter: fc.double({ min: 0, max: 0.999, noNaN: true }),
    }),
    { maxLength: 60 },
  ),
});

interface Moved {
  readonly before: HolderState;
  readonly event: HolderEvent;
  readonly after: HolderState;
  readonly effects: readonly Effect[];
}

function play({ mode, moves }: typeof histories extends fc.Arbitrary<infer History> ? History : never): Moved[] {
  let now = 0;
  let state = step(initialState({ identity: ME, mode }), { kind: 'started', epoch: 'fresh', now, jitter: 0 }).state;
  return moves.map(({ draft, pauseMs, jitter }) => {
    now += pauseMs;
    const event = { ...draft(state, now), now, jitter } as HolderEvent;
    const before = state;
    const next = step(before, event);
    state = next.state;
    return { before, event, after: state, effects: next.effects };
  });
}

const always = (check: (history: Moved[]) => void) =>
  fc.assert(
    fc.property(histories, (history) => check(play(history))),
    { numRuns: 2000 },
  );
const kinds = (effects: readonly Effect[]) => effects.map(({ kind }) => kind);

test('the histories reach every state', () => {
  const reached = new Set<string>();
  fc.assert(
    fc.property(histories, (history) => {
      for (const { after } of play(history)) reached.add(after.kind);
    }),
    // Fixed: that random histories miss a rare state now and then would say nothing about the code.
    { numRuns: 10_000, seed: 1 },
  );
  expect([...reached].toSorted()).toEqual([
    'confirming',
    'holding',
    'losing',
    'lost',
    'opening',
    'releasing',
    'unrenewed',
    'waiting',
  ]);
});

test('no state holds past its deadline once an event has come, but unrenewed, which says so', () => {
  always((history) => {
    for (const { event, after } of history) {
      if (after.kind === 'losing') expect(event.now).toBeLessThan(after.stopAt);
      else if ('deadline' in after && after.kind !== 'unrenewed') expect(event.now).toBeLessThan(after.deadline);
    }
  });
});

test('unrenewed comes of holding by ContinueFenced alone, at its deadline, and with a word about it', () => {
  always((history) => {
    for (const { before, event, after, effects } of history) {
      if (after.kind !== 'unrenewed' || before.kind === 'unrenewed') continue;
      expect(before).toMatchObject({ kind: 'holding', grant: { onRenewalFailure: 'ContinueFenced' } });
      expect(event.now).toBeGreaterThanOrEqual(after.deadline);
      expect(kinds(effects).slice(0, 2)).toEqual(['tell', 'note']);
    }
  });
});

test('an unrenewed holder holds again by the good reply to a renewal of its very grant, with the same token', () => {
  always((history) => {
    for (const { before, event, after } of history) {
      if (before.kind !== 'unrenewed' || after.kind !== 'holding') continue;
      expect(event).toMatchObject({ kind: 'wrote', result: { kind: 'ok' } });
      expect(after.grant).toEqual(before.grant);
      expect(after.seen?.lease).toMatchObject({ holder: ME, grant: { token: before.grant.token } });
    }
  });
});

test('an unrenewed holder that sees another holder, or none, does not stay so', () => {
  always((history) => {
    for (const { after } of history) {
      if (after.kind !== 'unrenewed' || after.seen === undefined) continue;
      expect(after.seen.lease).toMatchObject({ holder: ME, grant: { token: after.grant.token } });
    }
  });
});

test('nothing is shown as held at or past the deadline, even before an event has come', () => {
  always((history) => {
    for (const { after } of history) {
      if (!('deadline' in after)) continue;
      const views = [after.deadline, after.deadline + 1].map((instant) => viewOf(after, instant));
      for (const { state } of views) expect(state).not.toBe('held');
      if (after.grant.onRenewalFailure === 'Stop') for (const view of views) expect(view).not.toHaveProperty('token');
      for (const view of views) if ('token' in view) expect(view.expiresInSeconds).toBe(0);
    }
  });
});

test('only the good reply to a write moves a deadline, to 0.9 lease durations after it was sent', () => {
  always((history) => {
    for (const { before, event, after } of history) {
      if (!('deadline' in after) || ('deadline' in before && before.deadline === after.deadline)) continue;
      expect(event).toMatchObject({ kind: 'wrote', result: { kind: 'ok' } });
      const sentAt = 'attempt' in before && before.attempt.kind === 'writing' ? before.attempt.sentAt : NaN;
      expect(after.deadline).toBe(deadlineAt(sentAt, after.grant.leaseDurationMs));
    }
  });
});

test('the process never exits while the files are there', () => {
  always((history) => {
    let written = false;
    for (const { effects } of history) {
      for (const { kind } of effects) {
        if (kind === 'writeFiles') written = true;
        if (kind === 'removeFiles') written = false;
        if (kind === 'exit') expect(written).toBe(false);
      }
    }
  });
});

test('the lock is never released while the files are there', () => {
  always((history) => {
    let written = false;
    for (const { effects } of history) {
      for (const effect of effects) {
        if (effect.kind === 'writeFiles') written = true;
        if (effect.kind === 'removeFiles') written = false;
        if (effect.kind === 'write' && effect.purpose === 'release') expect(written).toBe(false);
      }
    }
  });
});

test('the gate opens only after the files were written under a confirmed grant', () => {
  always((history) => {
    for (const { before, event, effects } of history) {
      if (kinds(effects).includes('openGate')) expect([before.kind, event.kind]).toEqual(['opening', 'filesWritten']);
      if (kinds(effects).includes('writeFiles')) {
        expect(before.kind).toBe('confirming');
        expect(event).toMatchObject({ kind: 'wrote', result: { kind: 'ok' } });
      }
    }
  });
});

test('SIGTERM and a crash always end the process and never release', () => {
  always((history) => {
    for (const { before, event, effects } of history) {
      if (event.kind !== 'terminated' && event.kind !== 'crashed') continue;
      expect(kinds(effects)).not.toContain('write');
      if (before.kind !== 'lost') expect(kinds(effects).at(-1)).toBe('exit');
    }
  });
});

test('in gate mode a grant that was opened ends only with the process, or unopened', () => {
  always((history) => {
    for (const { before, after } of history) {
      if (before.mode === 'gate' && (before.kind === 'holding' || before.kind === 'unrenewed'))
        expect(['holding', 'unrenewed', 'lost']).toContain(after.kind);
    }
  });
});

test('after the end nothing happens', () => {
  always((history) => {
    for (const { before, after, effects } of history)
      if (before.kind === 'lost') expect([after.kind, effects]).toEqual(['lost', []]);
  });
});

test('the process exits once', () => {
  always((history) => {
    expect(
      history.flatMap(({ effects }) => kinds(effects)).filter((kind) => kind === 'exit').length,
    ).toBeLessThanOrEqual(1);
  });
});

test('every grant that is used was granted to this Pod, with its very token', () => {
  always((history) => {
    for (const { after, effects } of history) {
      for (const effect of effects) {
        if (effect.kind === 'writeFiles') expect('grant' in after && after.grant.token === effect.token).toBe(true);
        if (effect.kind === 'write') expect(effect.lease.holder).toBe(ME);
      }
    }
  });
});

test('no state sleeps for ever while it has something to do', () => {
  always((history) => {
    for (const { after } of history) {
      const busy = 'attempt' in after && after.attempt.kind !== 'resting';
      const idle = after.kind === 'waiting' || after.kind === 'lost';
      if (!busy && !idle) expect(nextWake(after)).toBeGreaterThanOrEqual(0);
    }
  });
});

test('a healthy holder of a 15 s lease writes at most 12 times a minute', () => {
  const lease = (revision: number, renewTime: string) => observed({ revision: String(revision), renewTime });
  let state: HolderState = step(initialState({ identity: ME, mode: 'gate' }), {
    kind: 'started',
    epoch: 'fresh',
    now: 0,
    jitter: 0,
  }).state;
  const writes: number[] = [];
  const feed = (event: HolderEvent) => {
    const next = step(state, event);
    state = next.state;
    for (const { kind } of next.effects) if (kind === 'write') writes.push(event.now);
  };
  feed({ kind: 'observed', observation: { lease: lease(1, T0), revision: 1n, requestedAt: 0 }, now: 0, jitter: 0 });
  for (let now = 0, revision = 2; now < 600_000; revision += 1) {
    feed({
      kind: 'wrote',
      id: state.writes,
      result: { kind: 'ok', lease: lease(revision, T1) },
      now: now + 5,
      jitter: 0.5,
    });
    feed({ kind: 'filesWritten', now: now + 5, jitter: 0.5 });
    now = nextWake(state) ?? Infinity;
    feed({ kind: 'tick', now, jitter: 0.5 });
  }
  for (const start of writes)
    expect(writes.filter((time) => time >= start && time < start + 60_000).length).toBeLessThanOrEqual(12);
  expect(writes.length).toBeGreaterThan(100);
});
