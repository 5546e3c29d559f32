import { type Moment, rest, type StateOf, stay } from './holder-moves.ts';
import type { HolderEvent, HolderState, Step } from './holder-types.ts';

type Unrenewed = StateOf<'unrenewed'>;

/** Whether the deadline leaves the program running: a term of the grant. */
export const continues = ({ grant }: Pick<StateOf<'holding'>, 'grant'>): boolean =>
  grant.onRenewalFailure === 'ContinueFenced';

/**
 * The deadline of a holder under `onRenewalFailure: ContinueFenced` has passed: it goes on, and goes on trying.
 *
 * The event that brought the time is then dealt with as any other; it may be the end of the grant, or the late reply to
 * a renewal that is still good. Only what stays unrenewed is told.
 */
export function goOn<Event extends HolderEvent>(
  state: StateOf<'holding'>,
  event: Event,
  step: (state: HolderState, event: Event) => Step,
): Step {
  const next = step({ ...state, kind: 'unrenewed', since: event.now }, event);
  if (next.state.kind === 'holding') return stay(next.state);
  if (next.state.kind !== 'unrenewed') return next;
  const { token } = state.grant;
  const sinceRenewalMs = event.now - state.renewedAt;
  return {
    state: next.state,
    effects: [{ kind: 'tell' }, { kind: 'note', reason: 'Unrenewed', token, sinceRenewalMs }, ...next.effects],
  };
}

/**
 * A renewal of the same grant succeeded: nobody else was granted the lock in between, for that would have changed the
 * Lease, and the write was a compare-and-swap. If its own validity has ended on the way, the next one decides.
 */
export function renewAgain(
  state: Unrenewed,
  moment: Moment,
  renewal: Pick<StateOf<'holding'>, 'renewedAt' | 'deadline' | 'attempt'>,
): Step {
  if (moment.now >= renewal.deadline) return stay(rest(state, moment));
  const { since: _, ...tenure } = state;
  const { token } = state.grant;
  const sinceRenewalMs = moment.now - state.renewedAt;
  return {
    state: { ...tenure, ...renewal, kind: 'holding' },
    effects: [{ kind: 'tell' }, { kind: 'note', reason: 'Renewed', token, sinceRenewalMs }],
  };
}
