import { IDLE_EXIT_CODE } from '../api/names.ts';
import { assertNever } from '../core/assert-never.ts';
import { initialState, step } from '../core/holder.ts';
import { explainLoss } from '../core/holder-reasons.ts';
import { nextWake } from '../core/holder-timing.ts';
import type { Effect, HolderEvent, HolderState, Mode } from '../core/holder-types.ts';
import { type LockView, type Refusal, refuseRelease, refuseStoodDown, viewOf } from '../core/holder-view.ts';
import type { Instant } from '../core/lease.ts';
import type { RunFiles } from './files.ts';
import { type LeaseClient, observationOf } from './lease-client.ts';
import type { Log } from './log.ts';
import type { Metrics } from './metrics.ts';
import { logChange } from './state-log.ts';
import type { SetTimer } from './timer.ts';

type WithoutTime<Event> = Event extends unknown ? Omit<Event, 'now' | 'jitter'> : never;
/** An event, before it is given the time. */
export type Happening = WithoutTime<HolderEvent>;

export interface SidecarPorts {
  readonly now: () => Instant;
  readonly setTimer: SetTimer;
  /** In [0, 1). */
  readonly random: () => number;
  readonly lease: LeaseClient;
  readonly files: RunFiles;
  readonly metrics: Metrics;
  readonly log: Log;
  readonly openGate: () => void;
  readonly tell: (view: LockView) => void;
  /** Writes an event for people. Best effort: returns at once and never throws. */
  readonly note: (note: {
    readonly reason: 'Unrenewed' | 'Renewed';
    readonly token: string;
    readonly sinceRenewalSeconds: number;
  }) => void;
  /** Ends the process. Called once, after the files are gone and the loss is recorded. */
  readonly exit: (end: {
    readonly explanation: string;
    readonly token: string | undefined;
    readonly postEvent: boolean;
    readonly code: number;
  }) => void;
}

export interface Sidecar {
  readonly dispatch: (happening: Happening) => void;
  readonly view: () => LockView;
  /** When the last good renewal was sent; only while held or unrenewed. */
  readonly renewedAt: () => Instant | undefined;
  readonly release: () => Refusal | undefined;
  readonly standDown: () => Refusal | undefined;
  /** An error that nobody foresaw: the grant is lost. Never throws. */
  readonly crash: (error: unknown) => void;
}

/** Whether a program may have the token by what it is told. */
export const mayRun = ({ state }: LockView): boolean => state === 'held' || state === 'unrenewed';

/** Feeds events to the holder's state machine, and runs its effects in order. */
export function createSidecar(ports: SidecarPorts, self: { readonly identity: string; readonly mode: Mode }): Sidecar {
  const { now, setTimer, files, log } = ports;
  let state: HolderState = initialState(self);
  let disarm = () => {};
  let crashed = false;
  let exiting = false;
  /** No program was given a token in this process's life, and those of earlier ones are dead. */
  let idle = false;
  const queue: Happening[] = [];

  function dispatch(happening: Happening): void {
    queue.push(happening);
    if (queue.length > 1) return; // an effect of the event that is being handled
    try {
      while (queue[0] !== undefined) {
        advance(queue[0]);
        queue.shift();
      }
    } catch (error) {
      queue.length = 0;
      crash(error);
    }
    arm();
  }

  function advance(happening: Happening): void {
    const before = state;
    if (happening.kind === 'started') idle = happening.epoch === 'fresh';
    const next = step(state, { ...happening, now: now(), jitter: ports.random() });
    state = next.state;
    for (const effect of next.effects) run(effect);
    logChange(log, before, state);
  }

  function arm(): void {
    disarm();
    const wake = nextWake(state);
    disarm =
      wake === undefined ? () => {} : setTimer(Math.max(1, Math.ceil(wake - now())), () => dispatch({ kind: 'tick' }));
  }

  function run(effect: Effect): void {
    switch (effect.kind) {
      case 'write':
        return void write(effect).catch(crash);
      case 'read':
        return void read(effect.timeoutMs).catch(crash);
      case 'writeFiles':
        return writeFiles(effect);
      case 'removeFiles':
        return files.removeGrant();
      case 'openGate':
        return ports.openGate();
      case 'tell':
        return ports.tell(viewOf(state, now()));
      case 'note':
        return note(effect);
      case 'exit':
        return exit(effect);
      default:
        return assertNever(effect);
    }
  }

  async function write(effect: Effect & { kind: 'write' }): Promise<void> {
    const { result, message } = await ports.lease.write(effect);
    if (effect.purpose !== 'release') ports.metrics.countRenewal(result.kind);
    if (result.kind !== 'ok')
      log.warn({ purpose: effect.purpose, result: result.kind, reason: message }, 'Lease write failed');
    dispatch({ kind: 'wrote', id: effect.id, result });
  }

  async function read(timeoutMs: number): Promise<void> {
    const requestedAt = now();
    const found = await ports.lease.list(timeoutMs);
    if (found.kind === 'failed' || found.kind === 'forbidden') {
      log.warn({ reason: found.message }, 'Lease read failed');
      return dispatch({ kind: 'readFailed' });
    }
    dispatch({ kind: 'observed', observation: observationOf(found, requestedAt) });
  }

  function writeFiles(effect: Effect & { kind: 'writeFiles' }): void {
    idle = false;
    try {
      files.writeGrant(effect.token);
      queue.push({ kind: 'filesWritten' });
    } catch (error) {
      log.error({ err: error }, 'Token files could not be written');
      queue.push({ kind: 'filesFailed' });
    }
  }

  function note({ reason, token, sinceRenewalMs }: Effect & { kind: 'note' }): void {
    if (reason === 'Unrenewed') ports.metrics.countUnrenewed();
    ports.note({ reason, token: String(token), sinceRenewalSeconds: Math.round(sinceRenewalMs / 100) / 10 });
  }

  function exit({ reason, loss }: Effect & { kind: 'exit' }): void {
    exiting = true;
    const explanation = explainLoss(reason);
    if (loss !== undefined) recordLoss(explanation, loss.heldMs);
    const code = idle ? IDLE_EXIT_CODE : 1;
    const postEvent = loss !== undefined && reason !== 'Terminated';
    ports.exit({ explanation, token: loss?.token === undefined ? undefined : String(loss.token), postEvent, code });
  }

  /** Best effort: the volume may be full, and the exit must not wait for it. */
  function recordLoss(explanation: string, heldMs: number): void {
    try {
      files.recordLoss(explanation, heldMs);
    } catch (error) {
      log.error({ err: error }, 'Loss could not be recorded');
    }
  }

  function crash(error: unknown): void {
    log.error({ err: error }, 'Sidecar crashed');
    if (crashed) return;
    crashed = true;
    try {
      const next = step(state, { kind: 'crashed', now: now(), jitter: 0 });
      state = next.state;
      for (const effect of next.effects) run(effect);
    } catch (second) {
      log.error({ err: second }, 'Files could not be removed');
    }
    // An error in the course of a loss leaves the state lost, with its exit not yet run.
    if (!exiting) exit({ kind: 'exit', reason: 'Crashed', loss: { token: undefined, heldMs: 0 } });
  }

  const ask = (refuse: typeof refuseRelease, kind: 'releaseAsked' | 'stoodDown') => (): Refusal | undefined => {
    const refusal = refuse(state, now());
    if (refusal === undefined) dispatch({ kind });
    return refusal;
  };

  return {
    dispatch,
    view: () => viewOf(state, now()),
    renewedAt: () => ('renewedAt' in state && mayRun(viewOf(state, now())) ? state.renewedAt : undefined),
    release: ask(refuseRelease, 'releaseAsked'),
    standDown: ask(refuseStoodDown, 'stoodDown'),
    crash,
  };
}
