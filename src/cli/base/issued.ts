import { LEASE_PREFIX, TOKEN_ANNOTATION } from '../../api/names.ts';
import type { RawLease } from '../../core/lease.ts';
import { parseFencingToken } from '../../core/token.ts';
import type { Mark } from '../mark.ts';

/** A token and who has it. */
export interface Seen {
  readonly token: bigint;
  /** `Lease shop/kilit.billing`, `mark of shop/billing`. */
  readonly where: string;
}

/** The greatest token of a kind of places, or undefined if none was ever issued. */
export function greatest(seen: readonly Seen[]): Seen | undefined {
  return seen.reduce<Seen | undefined>((most, one) => (one.token > (most?.token ?? 0n) ? one : most), undefined);
}

export function tokensOfLeases(leases: readonly RawLease[]): readonly Seen[] {
  return leases
    .filter(({ metadata }) => metadata.name.startsWith(LEASE_PREFIX))
    .map(({ metadata }) => ({
      token: parseFencingToken(metadata.annotations?.[TOKEN_ANNOTATION]) ?? 0n,
      where: `Lease ${metadata.namespace}/${metadata.name}`,
    }));
}

/** A lock remembers its token when its Lease was deleted. */
export function tokensOfLocks(
  locks: readonly {
    readonly metadata: { readonly namespace: string; readonly name: string };
    readonly status?: { readonly fencingToken?: string };
  }[],
): readonly Seen[] {
  return locks.map(({ metadata, status }) => ({
    token: parseFencingToken(status?.fencingToken) ?? 0n,
    where: `lock ${metadata.namespace}/${metadata.name}`,
  }));
}

export const tokensOfMarks = (marks: readonly Mark[]): readonly Seen[] =>
  marks.map(({ resource, token }) => ({ token, where: `the mark of ${resource}` }));
