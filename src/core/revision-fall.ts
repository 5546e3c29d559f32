import { ReadyReason } from '../api/reasons.ts';
import type { LeaseView } from './lease.ts';
import type { LockView } from './lock.ts';
import type { GrantGate } from './observed.ts';
import { type FencingToken, nextFencingToken, parseFencingToken } from './token.ts';

interface Input {
  readonly lock: LockView;
  readonly lease: LeaseView | undefined;
  readonly gate: GrantGate;
}

/**
 * The gate for this lock: closed while the token of its next grant could be one that was issued before.
 *
 * In normal operation it never closes: a token that this cluster has issued is below the revision that its grant made, and
 * that is what the next one is reckoned from.
 */
export function gateOf({ lock, lease, gate }: Input): GrantGate {
  const issued = issuedBefore({ lock, lease, gate });
  if (issued === undefined || !gate.open || canMoveOn(gate, issued)) return gate;
  const { base, fall, highestToken = 0n } = gate;
  // The message must not carry the Lease's revision: with each renewal it would be another, and be written again.
  const cause =
    fall !== undefined && issued <= fall.issued
      ? `The cluster went back to an earlier state (a restore of etcd without --bump-revision?): it was at revision ${fall.from} before and came back at ${fall.to}`
      : `This lock has granted token ${issued} (status.fencingToken), which the revision of this cluster has not reached (a move to another cluster, or a restore of etcd?)`;
  return closed(cause, base, max(issued, highestToken));
}

/**
 * Is the Lease alone behind, and not the cluster? Then any write of it brings its revision up.
 *
 * So it is after a restore with `--bump-revision`: the revision of the cluster jumps, those of the objects do not.
 */
export function isLeaseBehind({ lock, lease, gate }: Input): boolean {
  const issued = issuedBefore({ lock, lease, gate });
  return issued !== undefined && gate.open && canMoveOn(gate, issued);
}

/** A token that may have been issued for this lock, if the next one would not be above it. */
function issuedBefore({ lock, lease, gate }: Input): FencingToken | undefined {
  if (!gate.open || lease?.token === undefined) return undefined;
  const { resourceVersion, token } = lease;
  const next = nextFencingToken({ resourceVersion, token, base: gate.base });
  const issued = max(parseFencingToken(lock.status.fencingToken) ?? 0n, gate.fall?.issued ?? 0n);
  return next <= issued ? issued : undefined;
}

const canMoveOn = (gate: GrantGate & { readonly open: true }, issued: FencingToken): boolean =>
  (gate.revision ?? 0n) + gate.base > issued;

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
