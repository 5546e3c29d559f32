import { FENCED_ACQUIRE_TIME_ANNOTATION, FENCED_LABEL, TOKEN_ANNOTATION } from '../api/names.ts';
import { type FencingToken, parseFencingToken } from '../core/token.ts';
import { ElectionError } from './errors.ts';

/** The part of a Lease labelled `kilit.dev/fenced: "true"` that tells whose its token is. Times as the API server wrote them. */
export interface FencedLease {
  readonly metadata?: { readonly name?: string; readonly annotations?: Readonly<Record<string, string>> };
  readonly spec?: {
    readonly holderIdentity?: string;
    /** As text: a `Date` would lose the microseconds. */
    readonly acquireTime?: string;
  };
}

/** What tells one term of a leader from every other: what it wrote itself when it acquired. */
export interface OwnTerm {
  readonly identity: string;
  readonly acquireTime: string;
}

/**
 * The token that kilit minted for this term. Take it once, when the term begins, and hand it to everything that writes.
 *
 * A leader that was paused and wakes up may read the Lease when another has it already: with that token it would pass every
 * guard as if it were the other. So it is taken only from a Lease whose holder and acquireTime are its own, and which says
 * that the token was minted for this acquireTime.
 *
 * @throws ElectionError `NotHolder`: the Lease is not, or no longer, of this term; let the process exit. `NotMinted`: no
 * token yet; a Lease that was created held gets one at its first renewal.
 */
export function fencingTokenOf(lease: FencedLease, own: OwnTerm): FencingToken {
  const name = lease.metadata?.name ?? '';
  const { holderIdentity = '', acquireTime = '' } = lease.spec ?? {};
  if (holderIdentity === '' || holderIdentity !== own.identity) {
    throw new ElectionError(
      'NotHolder',
      `Lease '${name}' is held by '${holderIdentity}', not by '${own.identity}'. This process is not the leader; let it exit.`,
    );
  }
  if (acquireTime === '' || !sameTime(acquireTime, own.acquireTime)) {
    throw new ElectionError(
      'NotHolder',
      `Lease '${name}' was acquired by '${holderIdentity}' at ${acquireTime}, not at ${own.acquireTime}: in another term, or by another process of this name. Give each process an identity of its own.`,
    );
  }
  const annotations = lease.metadata?.annotations ?? {};
  const token = parseFencingToken(annotations[TOKEN_ANNOTATION]);
  if (token === undefined || token === 0n) {
    throw new ElectionError(
      'NotMinted',
      `Lease '${name}' has no fencing token yet: it comes with the next renewal. If it does not, label the Lease ${FENCED_LABEL}=true and install kilit with fencedLeases.enabled.`,
    );
  }
  const mintedFor = annotations[FENCED_ACQUIRE_TIME_ANNOTATION] ?? '';
  if (!sameTime(mintedFor, own.acquireTime)) {
    throw new ElectionError(
      'NotMinted',
      `Lease '${name}': its token ${token} was minted for a term that began at '${mintedFor}', not at ${own.acquireTime}. Nobody minted one for this term; install kilit with fencedLeases.enabled.`,
    );
  }
  return token;
}

/** As text, but for zeros at the end of the fraction, which some writers leave out. */
function sameTime(a: string, b: string): boolean {
  return shortest(a) === shortest(b);
}

const shortest = (time: string): string => time.replace(/(\.[0-9]*?)0*Z$/, '$1Z').replace('.Z', 'Z');
