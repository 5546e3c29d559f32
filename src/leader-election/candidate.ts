import { readMoment } from './clock.ts';
import { deadlinePassed, decideElection, isOwn } from './decide.ts';
import { acquiredRecord, releasedRecord } from './records.ts';
import type { ElectionSettings } from './settings.ts';
import { type Acquired, sleepUntilNextTry, type TermDeps } from './term.ts';

/** Gets the Lease and gives it back; what happens in between is a `Term`. */
export interface Candidate {
  /** Tries until the Lease is acquired, `undefined` when the signal aborts first. */
  campaign(signal: AbortSignal): Promise<Acquired | undefined>;
  /** Frees the Lease if this process holds it, or may hold it: the reply to its last write may have been lost. */
  release(tries: number): Promise<void>;
  /** The holder seen last, `''` if there is none. */
  holder(): string;
}

export function createCandidate(deps: Omit<TermDeps, 'observer'>, settings: ElectionSettings): Candidate {
  const { access, clock, log } = deps;
  const { identity, renewDeadlineSeconds } = settings;
  let lastAttempt: string | undefined;

  const holder = () => access.seen().lease?.record.holderIdentity ?? '';

  async function tryToAcquire(signal: AbortSignal): Promise<Acquired | undefined> {
    const holderBefore = holder();
    const read = await access.read(signal);
    if (read.kind === 'failed') {
      if (!signal.aborted) log.warn({ err: read.err }, 'Could not read lease');
      return undefined;
    }
    const decision = decideElection({ ...access.seen(), ...settings, lastAttempt, term: undefined }, readMoment(clock));
    if (decision.kind === 'create') return acquire(undefined, signal);
    if (decision.kind === 'acquire') return acquire(decision.lease, signal);
    if (holder() !== holderBefore) log.info({ holder: holder() }, 'Saw another holder');
    return undefined;
  }

  async function acquire(lease: Acquired['lease'] | undefined, signal: AbortSignal): Promise<Acquired | undefined> {
    const record = acquiredRecord(settings, clock.wallMicroseconds(), lease?.record);
    lastAttempt = record.acquireTime;
    const reply = await (lease === undefined
      ? access.create(record, signal)
      : access.update(record, lease.resourceVersion, signal));
    if (reply.kind === 'failed') {
      log.debug({ err: reply.err }, 'Could not acquire lease');
      return undefined;
    }
    lastAttempt = reply.lease.record.acquireTime;
    const isTooLate = deadlinePassed(reply.sentAt, renewDeadlineSeconds, readMoment(clock));
    return isTooLate ? undefined : reply;
  }

  return {
    async campaign(signal) {
      while (!signal.aborted) {
        const startedAt = readMoment(clock);
        const acquired = await tryToAcquire(signal);
        if (acquired !== undefined) return acquired;
        await sleepUntilNextTry(deps, settings, startedAt, signal);
      }
      return undefined;
    },

    async release(tries) {
      if (lastAttempt === undefined) return;
      const never = new AbortController().signal;
      for (let tried = 1; tried <= tries; tried += 1) {
        const startedAt = readMoment(clock);
        const read = access.isUncertain() ? await access.read(never) : undefined;
        if (read?.kind !== 'failed') {
          const { lease } = access.seen();
          if (lease === undefined || !isOwn({ identity, lastAttempt }, lease.record)) return;
          const reply = await access.update(releasedRecord(lease.record), lease.resourceVersion, never);
          if (reply.kind === 'ok') return log.info({ identity }, 'Released lease');
          if (reply.code === 'Conflict') continue;
        }
        if (tried < tries) await sleepUntilNextTry(deps, settings, startedAt, never);
      }
      log.warn({ identity }, 'Could not release lease; it will expire');
    },

    holder,
  };
}
