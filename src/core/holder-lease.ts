import { TOKEN_ANNOTATION, YIELD_ANNOTATION } from '../api/names.ts';
import { type OnRenewalFailure, onRenewalFailureOf } from './grant-terms.ts';
import { parseMicroTime } from './micro-time.ts';
import { type FencingToken, parseFencingToken } from './token.ts';

/** The right that one grant gave: what a program may use, and for how long after each renewal. */
export interface Grant {
  readonly token: FencingToken;
  /** Tells this grant from another with the same holder. Only compared for equality. */
  readonly acquireTime: string;
  /** Fixed at the grant; a change at the lock is taken over at the next grant. */
  readonly leaseDurationMs: number;
  readonly onRenewalFailure: OnRenewalFailure;
}

/** A Lease as the sidecar sees it. */
export interface ObservedLease {
  /** The Lease's resourceVersion: one counter for all Leases of the cluster, so it orders what was seen (KEP-5504). */
  readonly revision: bigint;
  /** `''`: free. */
  readonly holder: string;
  /** Whether the holder has written since the grant (a grant writes `renewTime = acquireTime`). */
  readonly confirmed: boolean;
  /** Why the operator asks the holder to yield (a YieldReason), if it does. */
  readonly yieldAsked: string | undefined;
  /** The grant of the present holder, or what is wrong with it. */
  readonly grant: Grant | { readonly fault: string };
  /** The object as read: what a write sends back, with one field changed. */
  readonly raw: RawLease;
}

/** The object itself. Only the named fields are known to be there; all others are carried along unread. */
export interface RawLease {
  readonly metadata: Readonly<Record<string, unknown>>;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** What an API object says about the Lease: its state, that it is on its way out, or why it cannot be read. */
export type LeaseReading =
  | { readonly kind: 'lease'; readonly lease: ObservedLease }
  | { readonly kind: 'deleted'; readonly revision: bigint }
  | { readonly kind: 'unreadable'; readonly fault: string };

const LONGEST_LEASE_SECONDS = 86_400;

/**
 * Reads a Lease from an API object.
 *
 * A Lease with a deletionTimestamp counts as deleted. A missing or garbled grant does not make a Lease unreadable, for
 * its holder is still known; only who holds it decides whether that matters.
 */
export function readLease(object: unknown): LeaseReading {
  if (!isRecord(object) || !isRecord(object.metadata)) return unreadable('it has no metadata');
  const { metadata } = object;
  const spec = isRecord(object.spec) ? object.spec : {};
  const revision = parseRevision(metadata.resourceVersion);
  if (revision === undefined)
    return unreadable(`its resourceVersion must be a decimal number, got ${show(metadata.resourceVersion)}`);
  if (metadata.deletionTimestamp !== undefined) return { kind: 'deleted', revision };
  const holder = spec.holderIdentity ?? '';
  if (typeof holder !== 'string') return unreadable(`holderIdentity must be a string, got ${show(holder)}`);
  const confirmed = spec.renewTime !== spec.acquireTime;
  const asked = isRecord(metadata.annotations) ? metadata.annotations[YIELD_ANNOTATION] : undefined;
  const yieldAsked = typeof asked === 'string' ? asked : undefined;
  const grant = readGrant(metadata, spec);
  const raw = { ...object, metadata, spec };
  return { kind: 'lease', lease: { revision, holder, confirmed, yieldAsked, grant, raw } };
}

/** Reads a resourceVersion; `undefined` if it is no decimal number below 10^20. */
export function parseRevision(value: unknown): bigint | undefined {
  return typeof value === 'string' && /^[0-9]{1,20}$/.test(value) ? BigInt(value) : undefined;
}

function readGrant(metadata: RawLease['metadata'], spec: RawLease['spec']): Grant | { readonly fault: string } {
  const annotations = isRecord(metadata.annotations) ? metadata.annotations : {};
  const text = annotations[TOKEN_ANNOTATION];
  const token = typeof text === 'string' ? parseFencingToken(text) : undefined;
  if (token === undefined || token === 0n) {
    return { fault: `annotation ${TOKEN_ANNOTATION} must be a positive decimal number below 10^18, got ${show(text)}` };
  }
  const seconds = spec.leaseDurationSeconds;
  if (typeof seconds !== 'number' || !Number.isInteger(seconds) || seconds < 1 || seconds > LONGEST_LEASE_SECONDS) {
    return { fault: `leaseDurationSeconds must be between 1 and ${LONGEST_LEASE_SECONDS}, got ${show(seconds)}` };
  }
  const { acquireTime } = spec;
  if (typeof acquireTime !== 'string' || parseMicroTime(acquireTime) === undefined) {
    return { fault: `acquireTime must be a time with six fraction digits, got ${show(acquireTime)}` };
  }
  const onRenewalFailure = onRenewalFailureOf(annotations);
  return { token, acquireTime, leaseDurationMs: seconds * 1000, onRenewalFailure };
}

/** Whether a Lease still records this very grant to this holder. Durations may differ: they belong to the next grant. */
export function recordsGrant(lease: ObservedLease | undefined, holder: string, grant: Grant): lease is ObservedLease {
  return lease?.holder === holder && !('fault' in lease.grant) && sameGrant(lease.grant, grant);
}

export function sameGrant(a: Grant, b: Grant): boolean {
  return a.token === b.token && a.acquireTime === b.acquireTime;
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function unreadable(fault: string): LeaseReading {
  return { kind: 'unreadable', fault };
}

function show(value: unknown): string {
  return value === undefined ? 'nothing' : JSON.stringify(value).slice(0, 100);
}
