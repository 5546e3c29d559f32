import { type Clock, type Moment, readMoment } from './clock.ts';
import { type ObservedElection, sameRecord } from './decide.ts';
import {
  type LeaseRecord,
  type LeaseStore,
  LeaseStoreError,
  type LeaseStoreErrorCode,
  type StoredLease,
} from './ports.ts';

export type ReadReply = { readonly kind: 'ok' } | Failure;
export type WriteReply = { readonly kind: 'ok'; readonly lease: StoredLease; readonly sentAt: Moment } | Failure;
/** `Other` includes a timeout and an abort: whether a write was carried out is then unknown. */
export interface Failure {
  readonly kind: 'failed';
  readonly code: LeaseStoreErrorCode;
  readonly err: unknown;
}

/** The store with a timeout on every request, and the memory of what it answered. */
export interface LeaseAccess {
  /** A missing Lease is an answer, not a failure. */
  read(signal: AbortSignal): Promise<ReadReply>;
  create(record: LeaseRecord, signal: AbortSignal): Promise<WriteReply>;
  update(record: LeaseRecord, resourceVersion: string, signal: AbortSignal): Promise<WriteReply>;
  seen(): Pick<ObservedElection, 'lease' | 'lastChange'>;
  /** Whether a write since the last good answer was refused or has an unknown outcome. */
  isUncertain(): boolean;
}

export function createLeaseAccess(store: LeaseStore, clock: Clock, requestTimeoutSeconds: number): LeaseAccess {
  let lease: StoredLease | undefined;
  let lastChange: ObservedElection['lastChange'];
  let uncertain = false;

  function remember(answer: StoredLease): void {
    lease = answer;
    uncertain = false;
    if (lastChange === undefined || !sameRecord(lastChange.record, answer.record)) {
      lastChange = { record: answer.record, seenAt: readMoment(clock) };
    }
  }

  async function write(signal: AbortSignal, send: (signal: AbortSignal) => Promise<StoredLease>): Promise<WriteReply> {
    const sentAt = readMoment(clock);
    uncertain = true;
    try {
      const answer = await withTimeout(clock, requestTimeoutSeconds, signal, send);
      remember(answer);
      return { kind: 'ok', lease: answer, sentAt };
    } catch (err) {
      return failure(err);
    }
  }

  return {
    async read(signal) {
      try {
        remember(await withTimeout(clock, requestTimeoutSeconds, signal, (signal) => store.get(signal)));
        return { kind: 'ok' };
      } catch (err) {
        const failed = failure(err);
        if (failed.code !== 'NotFound') return failed;
        lease = undefined;
        uncertain = false;
        return { kind: 'ok' };
      }
    },
    create: (record, signal) => write(signal, (signal) => store.create(record, signal)),
    update: (record, resourceVersion, signal) =>
      write(signal, (signal) => store.update(record, resourceVersion, signal)),
    seen: () => ({ lease, lastChange }),
    isUncertain: () => uncertain,
  };
}

function failure(err: unknown): Failure {
  return { kind: 'failed', code: err instanceof LeaseStoreError ? err.code : 'Other', err };
}

/** Settles by the timeout or the abort even when `send` ignores its signal; what it answers later is dropped. */
async function withTimeout<T>(
  clock: Clock,
  seconds: number,
  signal: AbortSignal,
  send: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  signal.throwIfAborted();
  // AbortSignal.any would keep one entry per request on a signal that lives as long as the process.
  const request = new AbortController();
  const abort = () => request.abort(signal.reason);
  signal.addEventListener('abort', abort, { once: true });
  const cancelTimer = clock.setTimer(seconds, () => {
    request.abort(new LeaseStoreError('Other', `No answer within ${seconds} s.`));
  });
  try {
    return await new Promise<T>((resolve, reject) => {
      request.signal.addEventListener('abort', () => reject(request.signal.reason as Error), { once: true });
      send(request.signal).then(resolve, reject);
    });
  } finally {
    cancelTimer();
    signal.removeEventListener('abort', abort);
  }
}
