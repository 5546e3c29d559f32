import { assertNever } from './assert-never.ts';
import { recordsGrant } from './holder-lease.ts';
import {
  end,
  isTrying,
  lossBy,
  type Moment,
  rest,
  resume,
  type StateOf,
  settle,
  stay,
  takeIn,
  tellOrLose,
} from './holder-moves.ts';
import { type HolderState, LossReason, type Observation, type Step } from './holder-types.ts';

/** A read or a watch has shown the Lease, or that there is none. */
export function observe(state: HolderState, observation: Observation, moment: Moment): Step {
  const known = takeIn(state, observation, moment.now);
  return known === 'stale' ? missRead(state, moment) : followLease(known, moment);
}

/** A read brought nothing: if a write waits for it, it is tried again after a rest. */
export function missRead(state: HolderState, moment: Moment): Step {
  return isTrying(state) && state.attempt.kind === 'reading' ? stay(rest(state, moment)) : stay(state);
}

/** What the Lease, newly seen, means for a state. It never moves a deadline. */
function followLease(state: HolderState, moment: Moment): Step {
  switch (state.kind) {
    case 'starting':
    case 'lost':
      return stay(state);
    case 'waiting':
      return settle(state, moment);
    case 'confirming':
      return recordsGrant(state.seen?.lease, state.identity, state.grant) && state.seen.lease.yieldAsked === undefined
        ? resume(state, moment)
        : settle(state, moment);
    case 'releasing':
      return followReleasing(state, moment);
    case 'opening':
    case 'holding':
    case 'unrenewed':
    case 'losing': {
      const reason = lossBy(state);
      if (reason !== undefined) return tellOrLose(state, moment.now, reason);
      return state.kind === 'holding' || state.kind === 'unrenewed' ? resume(state, moment) : stay(state);
    }
    default:
      return assertNever(state);
  }
}

export function followReleasing(state: StateOf<'releasing'>, moment: Moment): Step {
  if (recordsGrant(state.seen?.lease, state.identity, state.grant)) return resume(state, moment);
  return state.next === 'exit' ? end(state, LossReason.FilesFailed, { counts: true }) : settle(state, moment);
}
