import type { Action } from '../core/actions.ts';
import { decide } from '../core/decide.ts';
import type { Instant } from '../core/lease.ts';
import type { GrantGate } from '../core/observed.ts';
import { ApiError, isConflict, isNamespaceTerminating, isNotFound } from '../kube/errors.ts';
import { type Clock, now, systemClock } from './clock.ts';
import type { Log } from './log.ts';
import type { LockKey, Observer } from './observe.ts';
import type { Writer } from './writer.ts';

export interface ReconcileDeps {
  readonly observer: Pick<Observer, 'observe'>;
  readonly gate: () => GrantGate;
  /** Called before each action; what it throws keeps the action from being written. */
  readonly check: (action: Action) => Promise<void>;
  readonly write: Writer;
  /** Called after an action succeeded: events, metrics. */
  readonly done: (action: Action) => void;
  readonly log: Log;
  readonly clock?: Pick<Clock, 'monotonicSeconds' | 'wallMicroseconds'>;
}

/** How a pass went: `conflict` means that something had changed meanwhile, so that the next pass decides anew. */
export interface PassResult {
  readonly result: 'ok' | 'conflict' | 'error';
  readonly recheckAt: Instant | undefined;
  /** Whether anything was written, so that there may be more to do. */
  readonly wrote: boolean;
}

/**
 * One pass over a lock: observe → decide → apply.
 *
 * An action that fails does not keep the others of the pass from being tried: they are writes to different objects, and
 * none rests on another's success. But places are given in order only: while one Pod's is refused because the scheduler
 * or the kubelet wrote it meanwhile, nobody behind it gets one, or later Pods would overtake it. The last error is shown in the lock's condition `Ready` until a pass goes well.
 */
export function createReconciler(deps: ReconcileDeps): (key: LockKey, signal: AbortSignal) => Promise<PassResult> {
  const { clock = systemClock } = deps;
  const failures = new Map<LockKey, string>();
  let passes = 0;

  return async (key, signal) => {
    passes += 1;
    const reconcileId = passes;
    const observed = deps.observer.observe(key, { gate: deps.gate(), failure: failures.get(key) });
    const { actions, recheckAt } = decide(observed, now(clock));
    let result: PassResult['result'] = 'ok';
    let failure: string | undefined;
    let wrote = false;
    let places = MOST_PLACES;
    for (const action of actions) {
      if (signal.aborted) break;
      if (action.kind === 'JoinQueue') {
        if (places === 0) continue;
        places -= 1;
      }
      try {
        await deps.check(action);
        await deps.write(action);
        wrote = true;
        deps.log.info({ lock: key, reconcileId, ...describe(action) }, DONE[action.kind]);
        deps.done(action);
      } catch (err) {
        if (isConflict(err) || isNotFound(err) || isNamespaceTerminating(err)) {
          if (result === 'ok') result = 'conflict';
          if (action.kind === 'JoinQueue' && isConflict(err)) places = 0;
          deps.log.debug({ lock: key, reconcileId, action: action.kind, err }, 'Object has changed; deciding anew');
        } else {
          result = 'error';
          failure = `${action.kind} failed: ${err instanceof ApiError ? err.message : String(err)}`;
          deps.log.warn({ lock: key, reconcileId, action: action.kind, err }, 'Could not write');
        }
      }
    }
    if (failure !== undefined && observed.lock !== undefined) failures.set(key, failure);
    else if (result === 'ok' || observed.lock === undefined) failures.delete(key);
    return { result, recheckAt, wrote };
  };
}

/** Places given in one pass: while it lasts nobody can be granted this lock. The next pass gives more. */
const MOST_PLACES = 20;

const DONE: Readonly<Record<Action['kind'], string>> = {
  AddFinalizer: 'Added finalizer',
  RemoveFinalizer: 'Removed finalizer',
  PutRole: 'Wrote role',
  PutRoleBinding: 'Wrote role binding',
  CreateLease: 'Created lease',
  AdoptLease: 'Adopted lease',
  RefreshLease: 'Brought lease to a new revision',
  DeleteLease: 'Deleted lease',
  Grant: 'Granted lock',
  Free: 'Freed lock',
  AskYield: 'Asked holder to yield',
  Break: 'Broke grant',
  DropRequest: 'Dropped request',
  MarkHolder: 'Marked holder',
  Unmark: 'Unmarked pod',
  JoinQueue: 'Queued pod',
  AddPodFinalizer: 'Added finalizer to pod',
  RemovePodFinalizer: 'Removed finalizer from pod',
  WriteStatus: 'Wrote status',
};

function describe(action: Action): object {
  const pod = 'pod' in action ? { pod: { namespace: action.pod.namespace, name: action.pod.name } } : {};
  const token = 'token' in action ? { token: action.token.toString() } : {};
  const ended =
    'ended' in action && action.ended !== undefined
      ? { formerHolder: action.ended.holder.identity, reason: action.ended.reason }
      : {};
  return { ...pod, ...token, ...ended, ...describeRequest(action) };
}

function describeRequest(action: Action): object {
  if (action.kind === 'AskYield') {
    return { holder: action.holder.identity, reason: action.reason, by: action.request?.by };
  }
  if (action.kind === 'Break') return { formerHolder: action.holder.identity, by: action.request.by };
  return action.kind === 'DropRequest' ? { request: action.request, why: action.why } : {};
}
