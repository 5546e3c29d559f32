import { ReadyReason } from '../api/reasons.ts';
import type { LeaseView } from './lease.ts';
import type { LockView } from './lock.ts';
import type { GrantGate } from './observed.ts';
import { type FencingToken, nextFencingToken, parseFencingToken } from './token.ts';

/** The gate for this lock: closed while the token of its next grant could be one that was issued before. */
export function gateOf(lock: LockView, lease: LeaseView | undefined, gate: GrantGate): GrantGate {
  if (!gate.open || lease?.token === undefined) return gate;
  const { base, fall, highestToken = 0n } = gate;
  const next = nextFencingToken({ resourceVersion: lease.resourceVersion, token: lease.token, base });
  const shown = parseFencingToken(lock.status.fencingToken) ?? 0n;
  // The message must not carry the Lease's revision: with each renewal it would be another, and be written again.
  if (fall !== undefined && next <= fall.issued) {
    const cause = `The cluster went back to an earlier state (a restore of etcd without --bump-revision?): it was at revision ${fall.from} before and came back at ${fall.to}`;
    return closed(cause, base, max(fall.issued, shown, highestToken));
  }
  if (next <= shown) {
    const cause = `This lock has granted token ${shown} (status.fencingToken), which this cluster's revision has not reached (a move to another cluster, or a restore of etcd?)`;
    return closed(cause, base, max(shown, highestToken));
  }
  return gate;
}

function closed(cause: string, base: bigint, issued: FencingToken): GrantGate {
  const wanted = baseAbove(issued);
  const remedy =
    wanted > LARGEST_BASE
      ? 'No token base is great enough for that. Delete the lock and create it again if that token was never used.'
      : `Raise the token base from ${base} to ${wanted} (annotation kilit.dev/token-base of the operator's Namespace${wanted - base > LARGEST_STEP ? ', in steps of at most 10^14' : ''}); grants go on by themselves then.`;
  return {
    open: false,
    reason: ReadyReason.RevisionFellBehind,
    message: `${cause}. A token could come again that was issued before, and a guard would take an old holder for the present one or refuse the present one. ${remedy}`,
  };
}

/** The token base to raise to, so that every token is above `issued`: a round number, 1 to 2 million above. */
export const baseAbove = (issued: FencingToken): bigint => (issued / ROUND + 2n) * ROUND;

const ROUND = 1_000_000n;
/** What the policy `kilit-token-base` lets through: below 10^16, and at most 10^14 more in one change. */
const LARGEST_BASE = 10n ** 16n - 1n;
const LARGEST_STEP = 10n ** 14n;

const max = (...tokens: readonly FencingToken[]): FencingToken => tokens.reduce((a, b) => (a > b ? a : b), 0n);
