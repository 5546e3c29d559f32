import { describe, expect, test } from 'vitest';
import { greatest, tokensOfLeases, tokensOfLocks, tokensOfMarks } from '../../src/cli/base/issued.ts';
import { notAbove, proposedBase, raiseFault } from '../../src/cli/base/raise-to.ts';
import { aRawLease, aRawLock } from './support/objects.ts';

const TOKEN = (token: bigint) => ({ token, where: 'x' });

describe('the proposed base', () => {
  test.each([
    ['nothing was issued', { base: 0n, revision: 1000n, greatest: undefined }, 2_000_000_000n],
    ['a small token is known', { base: 0n, revision: 1000n, greatest: TOKEN(900n) }, 2_000_000_000n],
    [
      'a token is just below a round number',
      { base: 0n, revision: 5n, greatest: TOKEN(2_999_999_999n) },
      4_000_000_000n,
    ],
    ['a token is a round number', { base: 0n, revision: 5n, greatest: TOKEN(3_000_000_000n) }, 5_000_000_000n],
    [
      'base and revision are above all tokens',
      { base: 4_000_000_000n, revision: 7n, greatest: TOKEN(900n) },
      6_000_000_000n,
    ],
    [
      'a token is above 2^53',
      { base: 0n, revision: 5n, greatest: TOKEN(9_007_199_254_740_993n) },
      9_007_201_000_000_000n,
    ],
  ])('is round, above all, with room for writes that nobody remembers, when %s', (_, facts, want) => {
    const to = proposedBase(facts);
    expect(to).toBe(want);
    const known = [facts.base + facts.revision, facts.greatest?.token ?? 0n];
    for (const token of known) expect(to - token).toBeGreaterThanOrEqual(10n ** 9n);
    expect(notAbove(to, facts)).toBeUndefined();
  });
});

describe('a new base', () => {
  test.each([
    [9n, 'the token base only grows: it is 10, and 9 is less'],
    [10n, 'the token base is 10 already'],
    [11n, undefined],
    [10n ** 14n + 10n, undefined],
    [
      10n ** 14n + 11n,
      'one change may add at most 10^14, since it cannot be taken back; 100000000000011 would add 100000000000001',
    ],
    [10n ** 16n, 'the token base must be below 10^16, got 10000000000000000'],
  ])('%d: %s', (to, fault) => {
    expect(raiseFault(to, { base: 10n })).toBe(fault);
  });

  test('must bring the next token above the greatest that is known, not only level with it', () => {
    const facts = { base: 0n, revision: 100n, greatest: TOKEN(500n) };
    expect(notAbove(400n, facts)).toEqual(TOKEN(500n));
    expect(notAbove(401n, facts)).toBeUndefined();
  });
});

test('the greatest token is found by number among Leases, locks and marks, and Leases of others are left out', () => {
  const leases = tokensOfLeases([
    aRawLease({ token: '99' }),
    aRawLease({ name: 'kilit.ledger', token: '100' }),
    aRawLease({ name: 'somebody-elses', token: '999' }),
    aRawLease({ name: 'kilit.bad', token: '1e9' }),
  ]);
  expect(greatest(leases)).toEqual({ token: 100n, where: 'Lease shop/kilit.ledger' });
  expect(greatest([...leases, ...tokensOfLocks([aRawLock()])])).toEqual({ token: 900n, where: 'lock shop/billing' });
  const marks = tokensOfMarks([{ resource: 'shop/billing', token: 901n }]);
  expect(greatest([...tokensOfLocks([aRawLock()]), ...marks])).toEqual({
    token: 901n,
    where: 'the mark of shop/billing',
  });
  expect(greatest([])).toBeUndefined();
});
