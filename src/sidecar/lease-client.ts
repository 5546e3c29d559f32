import { leaseName } from '../api/names.ts';
import { assertNever } from '../core/assert-never.ts';
import { type ObservedLease, parseRevision, readLease } from '../core/holder-lease.ts';
import type { Observation, WritePurpose, WriteResult } from '../core/holder-types.ts';
import type { Instant } from '../core/lease.ts';
import { differentMicroTime } from '../core/micro-time.ts';
import type { ApiClient, ApiReply } from './api-client.ts';

/** What a read found. `missing`: there is no Lease, or it is on its way out. */
export type LeaseRead = Found | Trouble;
type Found =
  | { readonly kind: 'lease'; readonly lease: ObservedLease; readonly listRevision: bigint }
  | { readonly kind: 'missing'; readonly listRevision: bigint };

/** Why nothing was read. `forbidden`: so it is until the operator has made the lock's Role. */
export type Trouble =
  | { readonly kind: 'forbidden'; readonly message: string }
  | { readonly kind: 'failed'; readonly message: string };

export interface LeaseClient {
  /** Reads by a list of one: it has a revision, which a watch can follow, also when there is no Lease. */
  list(timeoutMs: number): Promise<LeaseRead>;
  /** `message` says what went wrong, for the log. */
  write(options: {
    readonly purpose: WritePurpose;
    readonly lease: ObservedLease;
    readonly timeoutMs: number;
  }): Promise<{ readonly result: WriteResult; readonly message: string | undefined }>;
  /** The path of a watch that starts after `revision`. */
  watchPath(revision: string): string;
}

/** The server ends each watch after this time; that is normal. */
export const WATCH_SECONDS = 300;

export function createLeaseClient(
  { api, wallMicros }: { readonly api: ApiClient; readonly wallMicros: () => bigint },
  { namespace, lock }: { readonly namespace: string; readonly lock: string },
): LeaseClient {
  const collection = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`;
  const name = leaseName(lock);
  const selected = `${collection}?fieldSelector=${encodeURIComponent(`metadata.name=${name}`)}`;
  return {
    async list(timeoutMs) {
      const reply = await api.send({ method: 'GET', path: selected, timeoutMs });
      const object = objectOf(reply);
      if (object.kind !== 'object') return object;
      const list = object.value as {
        readonly items?: unknown;
        readonly metadata?: { readonly resourceVersion?: unknown };
      };
      const listRevision = parseRevision(list?.metadata?.resourceVersion);
      if (!Array.isArray(list?.items) || listRevision === undefined)
        return { kind: 'failed', message: 'The answer is no list' };
      return list.items.length === 0 ? { kind: 'missing', listRevision } : toRead(list.items[0], listRevision);
    },
    async write({ purpose, lease, timeoutMs }) {
      const body = JSON.stringify(change(lease, purpose, wallMicros()));
      const path = `${collection}/${name}?fieldManager=kilit-sidecar`;
      return toWriteResult(await api.send({ method: 'PUT', path, body, timeoutMs }));
    },
    watchPath: (revision) =>
      `${selected}&watch=1&allowWatchBookmarks=true&timeoutSeconds=${WATCH_SECONDS}&resourceVersion=${revision}`,
  };
}

/** What a read that was sent at `requestedAt` tells the holder. */
export const observationOf = (found: Found, requestedAt: Instant): Observation =>
  found.kind === 'lease'
    ? { lease: found.lease, revision: found.lease.revision, requestedAt }
    : { lease: undefined, revision: found.listRevision, requestedAt };

/** The object as read, with the one field changed that the holder may change. */
function change({ raw }: ObservedLease, purpose: WritePurpose, wallMicros: bigint): unknown {
  if (purpose === 'release') return { ...raw, spec: { ...raw.spec, holderIdentity: '' } };
  const taken = [raw.spec.renewTime, raw.spec.acquireTime].filter((time) => typeof time === 'string');
  return { ...raw, spec: { ...raw.spec, renewTime: differentMicroTime(wallMicros, taken) } };
}

function toRead(object: unknown, listRevision: bigint): LeaseRead {
  const reading = readLease(object);
  switch (reading.kind) {
    case 'lease':
      return { kind: 'lease', lease: reading.lease, listRevision };
    case 'deleted':
      return { kind: 'missing', listRevision };
    case 'unreadable':
      return { kind: 'failed', message: `The Lease cannot be read: ${reading.fault}` };
    default:
      return assertNever(reading);
  }
}

function toWriteResult(reply: ApiReply): Awaited<ReturnType<LeaseClient['write']>> {
  if (reply.kind === 'timedOut') return { result: { kind: 'timedOut' }, message: 'No answer in time' };
  if (reply.kind === 'failed') return { result: { kind: 'failed' }, message: reply.message };
  if (reply.status === 409) return { result: { kind: 'conflict' }, message: explain(reply) };
  const object = objectOf(reply);
  if (object.kind === 'object') {
    const reading = readLease(object.value);
    if (reading.kind === 'lease') return { result: { kind: 'ok', lease: reading.lease }, message: undefined };
    // Written, but on its way out: the read that follows a refusal will tell.
    return { result: { kind: 'refused' }, message: 'The answer is no readable Lease' };
  }
  const passing = reply.status === 408 || reply.status === 429 || reply.status >= 500 || reply.status < 400;
  return { result: { kind: passing ? 'failed' : 'refused' }, message: object.message };
}

function objectOf(reply: ApiReply): { readonly kind: 'object'; readonly value: unknown } | Trouble {
  if (reply.kind === 'timedOut') return { kind: 'failed', message: 'No answer in time' };
  if (reply.kind === 'failed') return reply;
  if (reply.status !== 200 && reply.status !== 201) return refusal(reply);
  try {
    return { kind: 'object', value: JSON.parse(reply.body) };
  } catch {
    return { kind: 'failed', message: 'The answer is no JSON' };
  }
}

/** What an answer that says no means to a reader. */
export function refusal(answer: { readonly status: number; readonly body: string }): Trouble {
  return { kind: answer.status === 403 ? 'forbidden' : 'failed', message: explain(answer) };
}

/** `HTTP 403: leases "kilit.a" is forbidden: …`, from the Status that the API server sends. */
function explain({ status, body }: { readonly status: number; readonly body: string }): string {
  let text = body;
  try {
    const parsed: unknown = JSON.parse(body);
    if (typeof parsed === 'object' && parsed !== null && 'message' in parsed) text = String(parsed.message);
  } catch {
    // A proxy or a load balancer may have answered, in its own words.
  }
  return `HTTP ${status}: ${text.slice(0, 300)}`;
}
