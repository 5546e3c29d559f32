import { type Clock, longestElapsedSeconds, type Moment, readMoment, sleep } from './clock.ts';
import { deadlinePassed, decideElection } from './decide.ts';
import type { Failure, LeaseAccess } from './lease-access.ts';
import type { ElectionLog, ElectionObserver, LossReason, StoredLease } from './ports.ts';
import { renewedRecord } from './records.ts';
import { type ElectionSettings, JITTER_FACTOR } from './settings.ts';

export interface TermDeps {
  readonly access: LeaseAccess;
  readonly clock: Clock;
  /** From 0 up to 1, as Math.random. */
  readonly random: () => number;
  readonly log: ElectionLog;
  readonly observer: ElectionObserver;
}

/** The confirmed write that began a term. */
export interface Acquired {
  readonly lease: StoredLease;
  readonly sentAt: Moment;
}

/** One time of leading: from a confirmed acquisition until it is lost or ended. It never comes back. */
export interface Term {
  /** Answers from the deadline, not from memory. */
  isValid(): boolean;
  lossReason(): LossReason | undefined;
  /** Ends the renewals. From here on `isValid()` is false. */
  end(): void;
}

/** Renews until the term ends; calls `onLost` at most once. */
export function startTerm(
  deps: TermDeps,
  {
    settings,
    acquired,
    onLost,
  }: { settings: ElectionSettings; acquired: Acquired; onLost: (reason: LossReason) => void },
): Term {
  const { access, clock, log, observer } = deps;
  const { identity, leaseDurationSeconds, renewDeadlineSeconds } = settings;
  const { acquireTime } = acquired.lease.record;
  const ending = new AbortController();
  let { lease, sentAt: renewSentAt } = acquired;
  let lossReason: LossReason | undefined;

  const isLate = () => deadlinePassed(renewSentAt, renewDeadlineSeconds, readMoment(clock));

  function lose(reason: LossReason): void {
    if (ending.signal.aborted) return;
    lossReason = reason;
    ending.abort();
    onLost(reason);
  }

  async function watchDeadline(): Promise<void> {
    while (!ending.signal.aborted) {
      const left = renewDeadlineSeconds - longestElapsedSeconds(readMoment(clock), renewSentAt);
      if (left <= 0) return lose('DeadlinePassed');
      await sleep(clock, Math.max(left, SHORTEST_TIMER_SECONDS), ending.signal);
    }
  }

  async function renewRepeatedly(): Promise<void> {
    let startedAt = acquired.sentAt;
    while (!ending.signal.aborted) {
      await sleepUntilNextTry(deps, settings, startedAt, ending.signal);
      startedAt = readMoment(clock);
      await renew();
    }
  }

  async function renew(): Promise<void> {
    for (let tries = 0; tries < TRIES_PER_RENEWAL && !ending.signal.aborted; tries += 1) {
      if (isLate()) return lose('DeadlinePassed');
      const record = renewedRecord(lease.record, clock.wallMicroseconds());
      const reply = await access.update(record, lease.resourceVersion, ending.signal);
      if (reply.kind === 'ok') return accept(reply);
      if (reply.code === 'NotFound') return lose('LeaseDeleted');
      if (reply.code !== 'Conflict') return noteFailure(reply);
      const read = await access.read(ending.signal);
      if (read.kind === 'failed') return noteFailure(read);
      const term = { acquireTime, renewSentAt };
      const observed = {
        ...access.seen(),
        identity,
        leaseDurationSeconds,
        renewDeadlineSeconds,
        lastAttempt: acquireTime,
      };
      const decision = decideElection({ ...observed, term }, readMoment(clock));
      if (decision.kind === 'lose') return lose(decision.reason);
      if (decision.kind === 'renew') lease = decision.lease;
    }
  }

  /** A reply that arrives after the deadline saves nothing: `isValid()` has been false meanwhile. */
  function accept(reply: Acquired): void {
    if (ending.signal.aborted) return;
    if (isLate()) return lose('DeadlinePassed');
    const sinceLastSeconds = longestElapsedSeconds(reply.sentAt, renewSentAt);
    const durationSeconds = longestElapsedSeconds(readMoment(clock), reply.sentAt);
    ({ lease, sentAt: renewSentAt } = reply);
    log.debug({ durationSeconds, resourceVersion: lease.resourceVersion }, 'Renewed lease');
    observer.renewed?.({ durationSeconds, sinceLastSeconds });
    if (sinceLastSeconds > renewDeadlineSeconds / 2) {
      log.warn({ sinceLastSeconds, renewDeadlineSeconds }, 'Renewed lease late');
      observer.slowRenewal?.({ sinceLastSeconds, renewDeadlineSeconds });
    }
  }

  function noteFailure({ err }: Failure): void {
    if (ending.signal.aborted) return;
    const secondsLeft = renewDeadlineSeconds - longestElapsedSeconds(readMoment(clock), renewSentAt);
    log.warn({ err, secondsLeft }, 'Could not renew lease');
    observer.renewalFailed?.();
  }

  void watchDeadline();
  void renewRepeatedly();
  return {
    isValid: () => !ending.signal.aborted && !isLate(),
    lossReason: () => lossReason,
    end: () => ending.abort(),
  };
}

/** Sleeps until one jittered retry period after the last try began. */
export function sleepUntilNextTry(
  { clock, random }: Pick<TermDeps, 'clock' | 'random'>,
  { retryPeriodSeconds }: Pick<ElectionSettings, 'retryPeriodSeconds'>,
  startedAt: Moment,
  signal: AbortSignal,
): Promise<void> {
  const period = retryPeriodSeconds * (1 + (JITTER_FACTOR - 1) * random());
  return sleep(clock, period - longestElapsedSeconds(readMoment(clock), startedAt), signal);
}

/** After a conflict the Lease is read and the renewal tried once more: somebody may only have set a label. */
const TRIES_PER_RENEWAL = 2;
/** A timer may fire a little early by the clocks that decide. */
const SHORTEST_TIMER_SECONDS = 0.001;
