/**
 * A fencing token: a positive integer below 10^18 that grows with every grant of a lock.
 *
 * Never a JS `number`: above 2^53 it would silently change.
 */
export type FencingToken = bigint;

const TOKEN_PATTERN = /^(0|[1-9][0-9]{0,17})$/;

/** Reads a token as it stands in an annotation: plain decimal below 10^18, `"0"` before the first grant. */
export function parseFencingToken(text: string | undefined): FencingToken | undefined {
  return text !== undefined && TOKEN_PATTERN.test(text) ? BigInt(text) : undefined;
}

/**
 * The token of a grant that replaces the Lease at `resourceVersion`: `max(resourceVersion + base, previous + 1)`.
 *
 * The revision counts every write of the cluster, so neither deleting nor re-creating a lock brings a token back.
 * The admission policy `kilit-lease` refuses a grant with any other number.
 */
export function nextFencingToken(lease: {
  readonly resourceVersion: string;
  readonly token: FencingToken;
  readonly base: bigint;
}): FencingToken {
  const byRevision = BigInt(lease.resourceVersion) + lease.base;
  const byPrevious = lease.token + 1n;
  return byRevision > byPrevious ? byRevision : byPrevious;
}

const BASE_PATTERN = /^(0|[1-9][0-9]{0,15})$/;

/** Reads the cluster's token base as it stands at the operator's namespace: plain decimal below 10^16. */
export function parseTokenBase(text: string | undefined): bigint | undefined {
  return text !== undefined && BASE_PATTERN.test(text) ? BigInt(text) : undefined;
}
