import { assertNever } from '../core/assert-never.ts';
import { parseRevision, readLease } from '../core/holder-lease.ts';
import type { Observation } from '../core/holder-types.ts';
import type { ApiClient } from './api-client.ts';
import { type LeaseClient, observationOf, refusal, type Trouble, WATCH_SECONDS } from './lease-client.ts';
import { createPauses, PAUSE_TIMINGS, type PausePorts, type PauseTimings } from './pauses.ts';

export type { Trouble } from './lease-client.ts';

export interface WatchPorts extends PausePorts {
  readonly api: ApiClient;
  readonly lease: LeaseClient;
  readonly observe: (observation: Observation) => void;
  /** Called when reading stops to work, and when it works again (`undefined`). */
  readonly onTrouble: (trouble: Trouble | undefined) => void;
}

export interface WatchTimings extends PauseTimings {
  readonly listTimeoutMs: number;
  /** The API server sends a bookmark about every minute, so longer silence means that nobody is there. */
  readonly idleTimeoutMs: number;
  /** A watch that the API server ends earlier than this ended out of turn, as when the API server is restarted. */
  readonly fullWatchMs: number;
}

export const WATCH_TIMINGS: WatchTimings = {
  ...PAUSE_TIMINGS,
  listTimeoutMs: 5000,
  idleTimeoutMs: 90_000,
  fullWatchMs: WATCH_SECONDS * 1000 - 1000,
};

/**
 * Follows one Lease until `signal` aborts: list, watch from there, watch again when the time of the watch is over, list
 * again when the server does not know the revision any more (410), ended the watch out of turn, or anything went wrong.
 *
 * Out of turn, since the server may be a restarted one, on a restored etcd: it answers a watch from a revision that it has
 * not reached by silence, and a grant would not be seen until that was too long.
 *
 * Costs a healthy waiter one request per five minutes. At the start, before the lock and with it the right to read are
 * there, it just tries again; `createPauses` says how often.
 */
export async function followLease(ports: WatchPorts, timings: WatchTimings = WATCH_TIMINGS): Promise<void> {
  const { lease, now, observe, onTrouble, signal } = ports;
  const pauses = createPauses(ports, timings);
  let revision: string | undefined;
  while (!signal.aborted) {
    if (revision === undefined) {
      const requestedAt = now();
      const read = await lease.list(timings.listTimeoutMs);
      if (read.kind === 'failed' || read.kind === 'forbidden') {
        onTrouble(read);
        await pauses.pause(read.kind);
        continue;
      }
      onTrouble(undefined);
      observe(observationOf(read, requestedAt));
      revision = String(read.listRevision);
    }
    const end = await watchOnce(ports, revision ?? '', timings);
    if (end.kind === 'next') {
      // A server that ends each watch at once must not be asked again at once.
      if (end.progressed) pauses.worked();
      else await pauses.pause();
      revision = end.revision;
    } else {
      revision = undefined;
      if (end.trouble !== undefined) onTrouble(end.trouble);
      if (end.progressed === true) pauses.worked();
      await pauses.pause(end.trouble?.kind);
    }
  }
}

type WatchOutcome =
  | { readonly kind: 'next'; readonly revision: string; readonly progressed: boolean }
  | { readonly kind: 'list'; readonly trouble: Trouble | undefined; readonly progressed?: boolean };

async function watchOnce(ports: WatchPorts, from: string, timings: WatchTimings): Promise<WatchOutcome> {
  let revision = from;
  let fault: WatchOutcome | undefined;
  const list = (message: string): WatchOutcome => ({ kind: 'list', trouble: { kind: 'failed', message } });
  const startedAt = ports.now();
  const end = await ports.api.stream({
    path: ports.lease.watchPath(from),
    idleTimeoutMs: timings.idleTimeoutMs,
    onLine(line) {
      const event = readWatchLine(line);
      if (event.kind === 'list') fault = event.message === undefined ? EXPIRED : list(event.message);
      else {
        revision = event.revision;
        if (event.observation !== undefined) ports.observe(event.observation);
      }
      return event.kind !== 'list' && !ports.signal.aborted;
    },
  });
  if (fault !== undefined) return fault;
  switch (end.kind) {
    case 'ended': {
      const lastedMs = ports.now() - startedAt;
      const progressed = revision !== from || lastedMs >= timings.longestRetryMs;
      return lastedMs >= timings.fullWatchMs ? { kind: 'next', revision, progressed } : { ...EXPIRED, progressed };
    }
    case 'refused':
      return end.status === 410 ? EXPIRED : { kind: 'list', trouble: refusal(end) };
    case 'stalled':
      return list('The watch brought nothing for too long');
    case 'failed':
      return list(end.message);
    default:
      return assertNever(end);
  }
}

/** The server does not know the revision any more: nothing is wrong. */
const EXPIRED = { kind: 'list', trouble: undefined } as const satisfies WatchOutcome;

type WatchLine =
  | { readonly kind: 'event'; readonly revision: string; readonly observation: Observation | undefined }
  | { readonly kind: 'list'; readonly message: string | undefined };

/** Reads one line of a watch. Whatever is not understood asks for a list: nothing may be missed. */
export function readWatchLine(line: string): WatchLine {
  let event: { readonly type?: unknown; readonly object?: Readonly<Record<string, unknown>> };
  try {
    event = JSON.parse(line);
  } catch {
    return { kind: 'list', message: 'A line of the watch is no JSON' };
  }
  const object = event?.object;
  if (event?.type === 'ERROR') {
    return {
      kind: 'list',
      message: object?.code === 410 ? undefined : `The watch failed: ${JSON.stringify(object)?.slice(0, 300)}`,
    };
  }
  const metadata = object?.metadata as { readonly resourceVersion?: unknown } | undefined;
  const number = parseRevision(metadata?.resourceVersion);
  if (number === undefined) return { kind: 'list', message: 'A line of the watch has no resourceVersion' };
  const revision = String(number);
  switch (event.type) {
    case 'BOOKMARK':
      return { kind: 'event', revision, observation: undefined };
    case 'DELETED':
      return { kind: 'event', revision, observation: { lease: undefined, revision: number, requestedAt: undefined } };
    case 'ADDED':
    case 'MODIFIED': {
      const reading = readLease(object);
      if (reading.kind === 'unreadable') return { kind: 'list', message: `The Lease cannot be read: ${reading.fault}` };
      const lease = reading.kind === 'lease' ? reading.lease : undefined;
      return { kind: 'event', revision, observation: { lease, revision: number, requestedAt: undefined } };
    }
    default:
      return { kind: 'list', message: `The watch sent an event of type ${JSON.stringify(event.type)}` };
  }
}
