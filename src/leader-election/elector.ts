import { createCandidate } from './candidate.ts';
import type { Clock } from './clock.ts';
import { ElectionError } from './errors.ts';
import { createLeaseAccess } from './lease-access.ts';
import type { ElectionLog, ElectionObserver, ElectionPhase, LeaseStore, LossReason } from './ports.ts';
import { type ElectionOptions, electionSettings } from './settings.ts';
import { type Acquired, startTerm, type Term } from './term.ts';
import { type Lead, startWork, waitForWork } from './work.ts';

export interface ElectorDeps {
  readonly store: LeaseStore;
  readonly clock: Clock;
  /** From 0 up to 1, as `Math.random`. */
  readonly random: () => number;
  readonly log: ElectionLog;
  readonly observer?: ElectionObserver;
}

/**
 * How a run ended. Expected ends are results, not exceptions.
 *
 * - `stopped`: the run's signal aborted. The Lease was released if this process held it.
 * - `ended`: the work returned by itself. The Lease was released.
 * - `lost`: leadership was lost and the work has ended since.
 */
export type ElectionOutcome =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'ended' }
  | { readonly kind: 'lost'; readonly reason: LossReason };

export interface LeaderElector {
  /**
   * Waits for the Lease, runs `lead` once while this process leads, and releases the Lease after `lead` has settled.
   *
   * It never leads a second time by itself: call `run` again to stand again, also after a loss.
   *
   * @throws ElectionError `AlreadyRunning`; `WorkStillRunning` when `lead` outlives its stop timeout: the Lease is not
   * released and others take over when it expires, so let the process exit. Errors of `lead` pass through.
   */
  run(signal: AbortSignal, lead: Lead): Promise<ElectionOutcome>;
  /** Whether this process leads at this very moment, reckoned from the deadline: no timer needs to have fired. */
  isLeader(): boolean;
  /** The holder that this process saw last, `''` if there is none. May be out of date. */
  holder(): string;
}

/** @throws ElectionError `InvalidConfig`, with all faults in one message. */
export function createLeaderElector(deps: ElectorDeps, options: ElectionOptions): LeaderElector {
  const { clock, random, log, observer = {} } = deps;
  const settings = electionSettings(options);
  const { identity, stopTimeoutSeconds } = settings;
  const access = createLeaseAccess(deps.store, clock, settings.requestTimeoutSeconds);
  const termDeps = { access, clock, random, log, observer };
  const candidate = createCandidate(termDeps, settings);
  let phase: ElectionPhase = 'idle';
  let term: Term | undefined;
  let isRunning = false;
  let isWorking = false;

  function enter(to: ElectionPhase, reason?: LossReason): void {
    if (to === phase) return;
    const from = phase;
    phase = to;
    observer.phaseChanged?.(reason === undefined ? { from, to } : { from, to, reason });
  }

  async function leadOnce(signal: AbortSignal, lead: Lead, acquired: Acquired): Promise<ElectionOutcome> {
    const { leaseTransitions, acquireTime } = acquired.lease.record;
    const stopping = new AbortController();
    const onLost = (reason: LossReason) => {
      log.warn({ identity, reason, holder: candidate.holder() }, 'Lost leadership');
      enter('stopping', reason);
      stopping.abort(new ElectionError('Lost', `'${identity}' no longer leads: ${reason}.`));
    };
    const onStop = () => {
      enter('stopping');
      stopping.abort(signal.reason);
    };
    log.info({ identity, leaseTransitions }, 'Acquired leadership');
    enter('leading');
    const current = startTerm(termDeps, { settings, acquired, onLost });
    term = current;
    signal.addEventListener('abort', onStop, { once: true });
    isWorking = true;
    const work = startWork(lead, { signal: stopping.signal, acquireTime }).finally(() => {
      isWorking = false;
    });
    const workEnd = await waitForWork(clock, { work, stopping: stopping.signal, seconds: stopTimeoutSeconds });
    signal.removeEventListener('abort', onStop);
    current.end();
    if (workEnd === undefined) {
      throw new ElectionError(
        'WorkStillRunning',
        `No end of work within ${stopTimeoutSeconds} s. Let the process exit.`,
      );
    }
    const reason = current.lossReason();
    await candidate.release(reason === undefined ? RELEASE_TRIES : 1);
    if (workEnd.kind === 'threw') throw workEnd.err;
    if (reason !== undefined) return { kind: 'lost', reason };
    return { kind: signal.aborted ? 'stopped' : 'ended' };
  }

  return {
    async run(signal, lead) {
      if (isRunning || isWorking) {
        throw new ElectionError(
          'AlreadyRunning',
          `The elector of '${identity}', or its former work, is still running.`,
        );
      }
      isRunning = true;
      enter('waiting');
      try {
        const acquired = await candidate.campaign(signal);
        if (acquired !== undefined && !signal.aborted) return await leadOnce(signal, lead, acquired);
        await candidate.release(RELEASE_TRIES);
        return { kind: 'stopped' };
      } finally {
        isRunning = false;
        enter('idle');
      }
    },
    isLeader: () => term?.isValid() ?? false,
    holder: () => candidate.holder(),
  };
}

/** How often a release is tried. After a loss once only: standing again matters more. */
const RELEASE_TRIES = 3;
