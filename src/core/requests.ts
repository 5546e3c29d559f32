import type { LockBreak, LockHandover } from '../api/generated/distributedlock.ts';
import { BREAK_ANNOTATION, HANDOVER_ANNOTATION } from '../api/names.ts';
import type { LeaseView } from './lease.ts';
import type { LockView } from './lock.ts';
import type { Tenure } from './tenure.ts';
import { parseFencingToken } from './token.ts';

/** What an administrator asks about one grant: an annotation of the lock, `{"token":…,"by":…,"reason":…}`. */
export interface AdminRequest {
  /** Of the grant that it is about, decimal. */
  readonly token: string;
  readonly by: string;
  readonly reason: string;
}

/** What the status keeps of a request that was taken up. */
export type GrantRecord = LockBreak | LockHandover;

export type RequestKind = 'break' | 'handover';
export const REQUEST_ANNOTATION: Readonly<Record<RequestKind, string>> = {
  break: BREAK_ANNOTATION,
  handover: HANDOVER_ANNOTATION,
};

const LONGEST_BY = 512;
const LONGEST_REASON = 256;

/** Reads a request; `invalid`: somebody wrote it past the policy, which refuses anything else. */
export function parseRequest(text: string): AdminRequest | 'invalid' {
  try {
    const { token, by, reason } = JSON.parse(text) as Readonly<Record<string, unknown>>;
    if (typeof token !== 'string' || (parseFencingToken(token) ?? 0n) === 0n) return 'invalid';
    if (typeof by !== 'string' || typeof reason !== 'string') return 'invalid';
    return { token, by: by.slice(0, LONGEST_BY), reason: reason.slice(0, LONGEST_REASON) };
  } catch {
    return 'invalid';
  }
}

/**
 * Where a request stands.
 *
 * ```
 *   open ──▶ recorded in the status ──▶ carried out ──▶ done: taken off the lock
 *     └── of another grant, or unreadable ──▶ dropped: taken off the lock
 * ```
 * The record comes first, so that an operator that dies in between still knows what the changed token meant.
 */
export type Standing =
  | { readonly kind: 'none' }
  | { readonly kind: 'open'; readonly request: AdminRequest; readonly recorded: boolean }
  | { readonly kind: 'done' }
  | { readonly kind: 'dropped'; readonly why: string };

/** Of one lock. */
export type Requests = Readonly<Record<RequestKind, Standing>>;

export function standingOf(
  kind: RequestKind,
  { lock, lease, tenure }: { readonly lock: LockView; readonly lease: LeaseView; readonly tenure: Tenure },
): Standing {
  const text = lock.requests[kind];
  if (text === undefined) return { kind: 'none' };
  const request = parseRequest(text);
  if (request === 'invalid') return { kind: 'dropped', why: 'It is not {"token":"…","by":"…","reason":"…"}.' };
  const recorded = lastRecord(lock, kind)?.token === request.token;
  const isCurrent = request.token === lease.token?.toString();
  // It ends in this very pass; the next one sees whether the token is still the present one.
  if (isCurrent && tenure.kind === 'ended') return { kind: 'none' };
  if (isCurrent && tenure.kind === 'held') {
    const carriedOut = recorded && kind === 'handover' && lease.yieldAsked !== undefined;
    return carriedOut ? { kind: 'done' } : { kind: 'open', request, recorded };
  }
  if (kind === 'break' && tenure.kind === 'previous' && isEarlierGrant(lock, request)) {
    return recorded ? { kind: 'done' } : { kind: 'open', request, recorded };
  }
  if (recorded) return { kind: 'done' };
  const present = tenure.kind === 'held' ? `the present grant has token ${lease.token ?? ''}` : 'nobody holds the lock';
  return { kind: 'dropped', why: `It names token ${request.token}; ${present}.` };
}

/** The grant that the status still knows although its Lease is gone. */
const isEarlierGrant = (lock: LockView, { token }: { readonly token: string }): boolean =>
  lock.status.fencingToken === token;

/**
 * An administrator broke the earlier grant: the holder counts as gone when its terms have run out.
 *
 * That stands in the status first, or the next grant would hide what the request was about. A lock that is being deleted
 * keeps no record: there the request is enough.
 */
export function isVouchedFor(lock: LockView): boolean {
  const { lastBreak } = lock.status;
  if (lastBreak !== undefined && isEarlierGrant(lock, lastBreak)) return true;
  if (!lock.deleting) return false;
  const request = lock.requests.break === undefined ? 'invalid' : parseRequest(lock.requests.break);
  return request !== 'invalid' && isEarlierGrant(lock, request);
}

export const lastRecord = (lock: LockView, kind: RequestKind): GrantRecord | undefined =>
  kind === 'break' ? lock.status.lastBreak : lock.status.lastHandover;

/** What the status should keep of the last request of this kind. */
export function recordOf(
  kind: RequestKind,
  standing: Standing,
  { lock, nowText }: { readonly lock: LockView; readonly nowText: string },
): GrantRecord | undefined {
  if (standing.kind !== 'open' || standing.recorded) return lastRecord(lock, kind);
  return { ...standing.request, time: nowText };
}
