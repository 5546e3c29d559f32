import { assertNever } from './assert-never.ts';
import {
  end,
  giveBack,
  isTrying,
  lose,
  type StateOf,
  settle,
  stay,
  type Tenured,
  tellOrLose,
  write,
} from './holder-moves.ts';
import { missRead, observe } from './holder-observe.ts';
import { onReply } from './holder-reply.ts';
import { renewAt, tellAt } from './holder-timing.ts';
import { type HolderEvent, type HolderState, LossReason, type Mode, type Step } from './holder-types.ts';
import { continues, goOn } from './holder-unrenewed.ts';

/**
 * How a sidecar holds one lock: what it does next, given where it stands and what happened.
 *
 * Pure: time and jitter come with the event, effects are data. The edge runs the effects in order and feeds back one
 * event for each `write`, `read` and `writeFiles`.
 *
 * Guarantees: nothing but the good reply to a write moves a deadline, and it moves to 0.9 lease durations after that
 * write was *sent*; a deadline that has passed is acted on before anything else that an event says; the files are gone
 * before the process exits; no program is given a token without a good reply; SIGTERM never releases.
 * Assumes: `event.now` never falls, and includes the time that the machine was suspended.
 * Not promised: that the program has stopped by its deadline. The kubelet stops it; the guard refuses it. Under
 * `onRenewalFailure: ContinueFenced` the deadline does not stop it at all.
 */
export function step(state: HolderState, event: HolderEvent): Step {
  // A process that was stopped past its deadline loses with the first thing it sees, whatever that is.
  if (isTenured(state) && event.now >= endOf(state)) {
    if (state.kind === 'holding' && continues(state)) return goOn(state, event, step);
    return lose(state, event.now, state.kind === 'losing' ? state.reason : LossReason.DeadlinePassed);
  }
  switch (event.kind) {
    case 'started':
      return onStarted(state, event);
    case 'observed':
      return observe(state, event.observation, event);
    case 'readFailed':
      return missRead(state, event);
    case 'wrote':
      return onReply(state, event);
    case 'filesWritten':
      return state.kind === 'opening' ? onOpened(state) : stay(state);
    case 'filesFailed':
      return state.kind === 'opening' ? onFilesFailed(state, event) : stay(state);
    case 'tick':
      return onTick(state, event);
    case 'terminated':
      return stop(state, event, LossReason.Terminated);
    case 'crashed':
      return stop(state, event, LossReason.Crashed);
    case 'releaseAsked':
    case 'stoodDown':
      return onGivenUp(state, event);
    default:
      return assertNever(event);
  }
}

/** Where every sidecar begins. */
export function initialState(self: { readonly identity: string; readonly mode: Mode }): HolderState {
  return { ...self, kind: 'starting', seen: undefined, writes: 0 };
}

function isTenured(state: HolderState): state is Tenured {
  return state.kind === 'opening' || state.kind === 'holding' || state.kind === 'unrenewed' || state.kind === 'losing';
}

function endOf(state: Tenured): number {
  if (state.kind === 'unrenewed') return Number.POSITIVE_INFINITY;
  return state.kind === 'losing' ? state.stopAt : state.deadline;
}

type Event<Kind extends HolderEvent['kind']> = Extract<HolderEvent, { readonly kind: Kind }>;

function onStarted(state: HolderState, event: Event<'started'>): Step {
  if (state.kind !== 'starting') return stay(state);
  if (event.epoch === 'absent') return end(state, LossReason.RestartedAlone, { counts: false });
  return settle(state, event);
}

function onOpened(state: StateOf<'opening'>): Step {
  const { kind: _opening, ...held } = state;
  const until = renewAt(held.renewedAt, held.grant.leaseDurationMs);
  return {
    state: { ...held, kind: 'holding', attempt: { kind: 'resting', until, failures: 0 } },
    effects: [{ kind: 'openGate' }, { kind: 'tell' }],
  };
}

/** No program can have seen the token: it is given back, so that the next waiter need not wait for its end. */
function onFilesFailed(state: StateOf<'opening'>, event: HolderEvent): Step {
  const { identity, mode, seen, writes, grant } = state;
  const attempt = { kind: 'resting', until: event.now, failures: 0 } as const;
  const { state: next, effects } = write(
    { identity, mode, seen, writes, grant, kind: 'releasing', attempt, next: 'exit' },
    event.now,
  );
  return { state: next, effects: [{ kind: 'removeFiles' }, ...effects] };
}

function onTick(state: HolderState, event: HolderEvent): Step {
  if (state.kind === 'holding' && state.mode === 'standby' && !continues(state)) {
    const { renewedAt, grant } = state;
    if (event.now >= tellAt(renewedAt, grant.leaseDurationMs))
      return tellOrLose(state, event.now, LossReason.DeadlinePassed);
  }
  if (!isTrying(state) || state.attempt.kind !== 'resting' || event.now < state.attempt.until) return stay(state);
  return write(state, event.now);
}

/** SIGTERM, or an error that nobody foresaw. Never releases: neither proves that the program is dead. */
function stop(
  state: HolderState,
  event: HolderEvent,
  reason: typeof LossReason.Terminated | typeof LossReason.Crashed,
): Step {
  if (state.kind === 'lost') return stay(state);
  return isTenured(state)
    ? lose(state, event.now, reason)
    : end(state, reason, { counts: reason === LossReason.Crashed });
}

/** Standby only: `POST /v1/release` while holding, either request after the program was told or its lease unrenewed. */
function onGivenUp(state: HolderState, event: Event<'releaseAsked' | 'stoodDown'>): Step {
  if (state.mode === 'gate') return stay(state);
  if (state.kind === 'losing' || state.kind === 'unrenewed') return giveBack(state, event);
  return state.kind === 'holding' && event.kind === 'releaseAsked' ? giveBack(state, event) : stay(state);
}
