import { describe, expect, test } from 'vitest';
import { step } from '../../src/core/holder.ts';
import type { Effect, HolderEvent, HolderState, Mode } from '../../src/core/holder-types.ts';
import {
  aLease,
  at,
  confirmed,
  FENCED,
  granted,
  ME,
  NOW,
  news,
  OTHER,
  observed,
  states,
  T1,
} from './holder-fixtures.ts';

/** Every event that can happen, at 10,000 ms unless its name says otherwise. */
const EVENTS = {
  startedFresh: at(NOW, { kind: 'started', epoch: 'fresh' }),
  startedWithoutEpoch: at(NOW, { kind: 'started', epoch: 'absent' }),
  seesOwnGrant: at(NOW, { kind: 'observed', observation: news(observed({ revision: '102' })) }),
  seesOwnConfirmed: at(NOW, { kind: 'observed', observation: news(observed({ revision: '102', renewTime: T1 })) }),
  seesNewGrantToMe: at(NOW, {
    kind: 'observed',
    observation: news(observed({ revision: '102', token: '43', acquireTime: T1 })),
  }),
  seesYieldAsked: at(NOW, {
    kind: 'observed',
    observation: news(observed({ revision: '102', renewTime: T1, yield: 'MaxHold' })),
  }),
  seesYieldBeforeConfirmed: at(NOW, {
    kind: 'observed',
    observation: news(observed({ revision: '102', yield: 'MaxHold' })),
  }),
  replyAsksToYield: at(NOW, {
    kind: 'wrote',
    id: 7,
    result: { kind: 'ok', lease: observed({ revision: '102', renewTime: T1, yield: 'MaxHold' }) },
  }),
  seesOther: at(NOW, { kind: 'observed', observation: news(observed({ revision: '102', holder: OTHER })) }),
  seesFree: at(NOW, { kind: 'observed', observation: news(observed({ revision: '102', holder: '' })) }),
  seesMissing: at(NOW, { kind: 'observed', observation: { lease: undefined, revision: undefined, requestedAt: 9900 } }),
  seesOldNews: at(NOW, { kind: 'observed', observation: news(observed({ revision: '90', holder: OTHER })) }),
  seesGarbledGrant: at(NOW, { kind: 'observed', observation: news(observed({ revision: '102', token: '007' })) }),
  readFails: at(NOW, { kind: 'readFailed' }),
  writeSucceeds: at(NOW, {
    kind: 'wrote',
    id: 7,
    result: { kind: 'ok', lease: observed({ revision: '102', renewTime: T1 }) },
  }),
  releaseSucceeds: at(NOW, {
    kind: 'wrote',
    id: 7,
    result: { kind: 'ok', lease: observed({ revision: '102', holder: '', renewTime: T1 }) },
  }),
  writeConflicts: at(NOW, { kind: 'wrote', id: 7, result: { kind: 'conflict' } }),
  writeIsRefused: at(NOW, { kind: 'wrote', id: 7, result: { kind: 'refused' } }),
  writeFails: at(NOW, { kind: 'wrote', id: 7, result: { kind: 'failed' } }),
  writeTimesOut: at(NOW, { kind: 'wrote', id: 7, result: { kind: 'timedOut' } }),
  earlierWriteFails: at(NOW, { kind: 'wrote', id: 6, result: { kind: 'failed' } }),
  filesWritten: at(NOW, { kind: 'filesWritten' }),
  filesFailed: at(NOW, { kind: 'filesFailed' }),
  tick: at(NOW, { kind: 'tick' }),
  tickPastDeadline: at(22_500, { kind: 'tick' }),
  replyPastDeadline: at(22_500, {
    kind: 'wrote',
    id: 7,
    result: { kind: 'ok', lease: observed({ revision: '102', renewTime: T1 }) },
  }),
  terminated: at(NOW, { kind: 'terminated' }),
  releaseAsked: at(NOW, { kind: 'releaseAsked' }),
  stoodDown: at(NOW, { kind: 'stoodDown' }),
  crashed: at(NOW, { kind: 'crashed' }),
} as const satisfies Record<string, HolderEvent>;

type EventName = keyof typeof EVENTS;
/** The state's kind, then the effects in order; a write by its purpose, a counted exit by its reason and `!`. */
type Expected = string;
type Row = Record<EventName, Expected>;

const END = 'removeFiles tell';
const TERMINATED = `lost: ${END} exit(Terminated)`;
const CRASHED = `lost: ${END} exit(Crashed)!`;
const lost = (reason: string) => `lost: ${END} exit(${reason})!`;

const all = (expected: Expected) => Object.fromEntries(Object.keys(EVENTS).map((name) => [name, expected])) as Row;

const GATE: Record<Exclude<HolderState['kind'], 'losing'>, Row> = {
  starting: {
    ...all('starting:'),
    startedFresh: 'waiting: tell',
    startedWithoutEpoch: `lost: ${END} exit(RestartedAlone)`,
    terminated: TERMINATED,
    crashed: CRASHED,
  },
  waiting: {
    ...all('waiting:'),
    seesOwnGrant: 'confirming: write(confirm)',
    seesNewGrantToMe: 'confirming: write(confirm)',
    seesOwnConfirmed: 'releasing: write(release)',
    seesYieldAsked: 'releasing: write(release)',
    seesYieldBeforeConfirmed: 'releasing: write(release)',
    replyAsksToYield: 'releasing: write(release)',
    // The reply to a write of an earlier state is news of the Lease.
    writeSucceeds: 'releasing: write(release)',
    replyPastDeadline: 'releasing: write(release)',
    terminated: TERMINATED,
    crashed: CRASHED,
  },
  confirming: {
    ...all('confirming:'),
    seesNewGrantToMe: 'confirming: write(confirm)',
    // Nothing was started: it is given back.
    seesYieldAsked: 'releasing: write(release)',
    seesYieldBeforeConfirmed: 'releasing: write(release)',
    replyAsksToYield: 'releasing: write(release)',
    seesOther: 'waiting: tell',
    seesFree: 'waiting: tell',
    seesMissing: 'waiting: tell',
    seesGarbledGrant: 'waiting: tell',
    writeSucceeds: 'opening: writeFiles',
    releaseSucceeds: 'waiting: tell',
    writeConflicts: 'confirming: read',
    writeIsRefused: 'confirming: read',
    terminated: TERMINATED,
    crashed: CRASHED,
  },
  opening: {
    ...all('opening:'),
    seesYieldAsked: lost('YieldAsked'),
    seesYieldBeforeConfirmed: lost('YieldAsked'),
    replyAsksToYield: lost('YieldAsked'),
    seesNewGrantToMe: lost('GrantChanged'),
    seesGarbledGrant: lost('GrantChanged'),
    seesOther: lost('HolderChanged'),
    seesFree: lost('HolderChanged'),
    releaseSucceeds: lost('HolderChanged'),
    seesMissing: lost('LeaseDeleted'),
    filesWritten: 'holding: openGate tell',
    filesFailed: 'releasing: removeFiles write(release)',
    tickPastDeadline: lost('DeadlinePassed'),
    replyPastDeadline: lost('DeadlinePassed'),
    terminated: lost('Terminated'),
    crashed: lost('Crashed'),
  },
  holding: {
    ...all('holding:'),
    seesYieldAsked: lost('YieldAsked'),
    seesYieldBeforeConfirmed: lost('YieldAsked'),
    replyAsksToYield: lost('YieldAsked'),
    seesNewGrantToMe: lost('GrantChanged'),
    seesGarbledGrant: lost('GrantChanged'),
    seesOther: lost('HolderChanged'),
    seesFree: lost('HolderChanged'),
    releaseSucceeds: lost('HolderChanged'),
    seesMissing: lost('LeaseDeleted'),
    writeConflicts: 'holding: read',
    writeIsRefused: 'holding: read',
    tickPastDeadline: lost('DeadlinePassed'),
    replyPastDeadline: lost('DeadlinePassed'),
    terminated: lost('Terminated'),
    crashed: lost('Crashed'),
  },
  // Its deadline is long past, and no time ends it.
  unrenewed: {
    ...all('unrenewed:'),
    seesYieldAsked: lost('YieldAsked'),
    seesYieldBeforeConfirmed: lost('YieldAsked'),
    replyAsksToYield: lost('YieldAsked'),
    seesNewGrantToMe: lost('GrantChanged'),
    seesGarbledGrant: lost('GrantChanged'),
    seesOther: lost('HolderChanged'),
    seesFree: lost('HolderChanged'),
    releaseSucceeds: lost('HolderChanged'),
    seesMissing: lost('LeaseDeleted'),
    writeSucceeds: 'holding: tell note(Renewed)',
    replyPastDeadline: 'holding: tell note(Renewed)',
    writeConflicts: 'unrenewed: read',
    writeIsRefused: 'unrenewed: read',
    terminated: lost('Terminated'),
    crashed: lost('Crashed'),
  },
  releasing: {
    ...all('releasing:'),
    seesNewGrantToMe: 'confirming: write(confirm)',
    seesOther: 'waiting: tell',
    seesFree: 'waiting: tell',
    seesMissing: 'waiting: tell',
    seesGarbledGrant: 'waiting: tell',
    releaseSucceeds: 'waiting: tell',
    writeConflicts: 'releasing: read',
    writeIsRefused: 'releasing: read',
    terminated: TERMINATED,
    crashed: CRASHED,
  },
  lost: all('lost:'),
};

const TOLD = 'losing: removeFiles tell';

const STANDBY: Record<HolderState['kind'], Row> = {
  starting: GATE.starting,
  waiting: GATE.waiting,
  confirming: GATE.confirming,
  opening: GATE.opening,
  holding: {
    ...GATE.holding,
    seesYieldAsked: TOLD,
    seesYieldBeforeConfirmed: TOLD,
    replyAsksToYield: TOLD,
    seesNewGrantToMe: TOLD,
    seesGarbledGrant: TOLD,
    seesOther: TOLD,
    seesFree: TOLD,
    releaseSucceeds: TOLD,
    seesMissing: TOLD,
    releaseAsked: 'releasing: removeFiles tell write(release)',
  },
  unrenewed: {
    ...GATE.unrenewed,
    seesYieldAsked: TOLD,
    seesYieldBeforeConfirmed: TOLD,
    replyAsksToYield: TOLD,
    seesNewGrantToMe: TOLD,
    seesGarbledGrant: TOLD,
    seesOther: TOLD,
    seesFree: TOLD,
    releaseSucceeds: TOLD,
    seesMissing: TOLD,
    releaseAsked: 'releasing: removeFiles tell write(release)',
    stoodDown: 'releasing: removeFiles tell write(release)',
  },
  losing: {
    ...all('losing:'),
    tickPastDeadline: lost('DeadlinePassed'),
    replyPastDeadline: lost('DeadlinePassed'),
    terminated: lost('Terminated'),
    crashed: lost('Crashed'),
    releaseAsked: 'releasing: removeFiles tell write(release)',
    stoodDown: 'releasing: removeFiles tell write(release)',
  },
  releasing: GATE.releasing,
  lost: GATE.lost,
};

/** Of a holder by ContinueFenced. The late reply is to a renewal that is good for 800 ms more. */
const AT_THE_DEADLINE = {
  tickPastDeadline: 'unrenewed: tell note(Unrenewed)',
  replyPastDeadline: 'holding:',
};

function show(effect: Effect): string {
  if (effect.kind === 'write') return `write(${effect.purpose})`;
  if (effect.kind === 'note') return `note(${effect.reason})`;
  if (effect.kind === 'exit') return `exit(${effect.reason})${effect.loss === undefined ? '' : '!'}`;
  return effect.kind;
}

const outcome = (state: HolderState, event: HolderEvent): Expected => {
  const next = step(state, event);
  return [`${next.state.kind}:`, ...next.effects.map(show)].join(' ');
};

describe.each([
  { mode: 'gate', table: GATE },
  { mode: 'standby', table: STANDBY },
] as const satisfies { mode: Mode; table: Partial<Record<HolderState['kind'], Row>> }[])(
  'in $mode mode',
  ({ mode, table }) => {
    const fenced = { ...states(mode).holding, grant: FENCED };
    test('from holding by ContinueFenced each event leads where the table says, but for the deadline', () => {
      const got = Object.fromEntries(Object.entries(EVENTS).map(([name, event]) => [name, outcome(fenced, event)]));
      expect(got).toEqual({ ...table.holding, ...AT_THE_DEADLINE });
    });

    for (const [kind, row] of Object.entries(table)) {
      test(`from ${kind} each event leads where the table says`, () => {
        const from = states(mode)[kind as HolderState['kind']];
        const got = Object.fromEntries(Object.entries(EVENTS).map(([name, event]) => [name, outcome(from, event)]));
        expect(got).toEqual(row);
      });
    }
  },
);

test('the states of the table are what their events assume', () => {
  expect(granted.confirmed).toBe(false);
  expect(confirmed.confirmed).toBe(true);
  expect(observed({ token: '007' }).grant).toHaveProperty('fault');
  expect(aLease()).toHaveProperty('spec.holderIdentity', ME);
});
