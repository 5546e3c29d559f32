import { assertNever } from '../../core/assert-never.ts';
import type { GrantRequest, RequestKind } from '../lock/grant-request.ts';

/** What one look at lock and Lease shows of a request. */
export interface Seen {
  /** The request that stands on the lock. */
  readonly standing: GrantRequest | 'unreadable' | undefined;
  /** The token of the last request of this kind that was carried out. */
  readonly recorded: string | undefined;
  /** Of the Lease. */
  readonly token: bigint;
  /** The Lease's holder, a Pod unless `breaking`. */
  readonly holder: string | undefined;
  /** The operator's stand-in holds the lock while the former holder is being stopped. */
  readonly breaking: boolean;
  /** The operator has asked the holder to yield. */
  readonly yielding: boolean;
}

/**
 * How far a request has come.
 *
 * ```
 *   asked ──▶ recorded ──┬──▶ yielding ──▶ released ──▶ passed   (handover)
 *     │                  └──▶ stopping ──▶ freed or passed       (break)
 *     └─────▶ dropped, when the operator takes it away and records nothing
 * ```
 */
export type Stage =
  | { readonly kind: 'asked' }
  | { readonly kind: 'yielding'; readonly holder: string }
  /** The operator has written into the status that it takes the request up. */
  | { readonly kind: 'recorded' }
  /** The annotation is gone, and there is no record of it (yet). */
  | { readonly kind: 'dropped' }
  /** The grant has ended, and the token has not moved yet. */
  | { readonly kind: 'released' }
  /** The token has moved, so guards refuse the former holder; it is being stopped. */
  | { readonly kind: 'stopping'; readonly token: bigint }
  | { readonly kind: 'freed'; readonly token: bigint }
  | { readonly kind: 'passed'; readonly token: bigint; readonly holder: string };

/** The name under which the operator itself holds a lock while it stops a broken holder. */
export const breakHolder = (lockUid: string): string => `break-${lockUid}`;

/** Pure: only what is seen now counts, so that a look that was missed changes nothing. */
export function stageOf(request: GrantRequest, seen: Seen): Stage {
  const { token, holder } = seen;
  if (token > BigInt(request.token)) {
    if (holder === undefined) return { kind: 'freed', token };
    return seen.breaking ? { kind: 'stopping', token } : { kind: 'passed', token, holder };
  }
  if (holder === undefined) return { kind: 'released' };
  if (seen.yielding) return { kind: 'yielding', holder };
  if (seen.recorded === request.token) return { kind: 'recorded' };
  const stands = seen.standing !== undefined && seen.standing !== 'unreadable' && seen.standing.token === request.token;
  return { kind: stands ? 'asked' : 'dropped' };
}

/** A stage that stands for so long, in milliseconds, ends the waiting: `ok` when what was asked for is done. */
export function verdictOf(stage: Stage, standsMs: number): 'ok' | 'failed' | 'wait' {
  if (stage.kind === 'passed' || stage.kind === 'freed') return 'ok';
  // Nobody may be waiting, so that no grant comes.
  if (stage.kind === 'released') return standsMs >= RELEASED_MS ? 'ok' : 'wait';
  // The operator writes the record and takes the annotation away in two writes.
  if (stage.kind === 'dropped') return standsMs >= DROPPED_MS ? 'failed' : 'wait';
  return 'wait';
}

const RELEASED_MS = 10_000;
const DROPPED_MS = 5_000;

/** A stage in words. */
export function stageText(kind: RequestKind, stage: Stage): string {
  switch (stage.kind) {
    case 'asked':
      return 'asked; the operator has not acted yet';
    case 'yielding':
      return `the operator has asked Pod ${stage.holder} to give the lock up`;
    case 'recorded':
      return `the operator has recorded the ${kind}; the token has not moved yet`;
    case 'dropped':
      return 'the operator has taken the request away';
    case 'released':
      return 'the grant has ended; nobody holds the lock, the next grant moves the token';
    case 'stopping':
      return `the token is ${stage.token} now: guards refuse the former holder; waiting until its programs are stopped`;
    case 'freed':
      return `done: the lock is free, and its token is ${stage.token}`;
    case 'passed':
      return `done: Pod ${stage.holder} holds the lock with token ${stage.token}`;
    default:
      return assertNever(stage);
  }
}
