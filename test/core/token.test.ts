import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { nextFencingToken, parseFencingToken, parseTokenBase } from '../../src/core/token.ts';

describe('parseFencingToken', () => {
  it.each(['0', '1', '9', '10', '4711', '9007199254740993', '999999999999999999'])('reads %s', (text) => {
    expect(parseFencingToken(text)).toBe(BigInt(text));
  });

  it.each(['', '007', '+5', ' 5', '5 ', '-1', '1e3', '0x10', '1000000000000000000', '5\n', '５', undefined])(
    'refuses %j',
    (text) => {
      expect(parseFencingToken(text)).toBeUndefined();
    },
  );
});

describe('parseTokenBase', () => {
  it('reads a decimal below 10^16', () => expect(parseTokenBase('9999999999999999')).toBe(9999999999999999n));
  it.each(['', '-1', '00', '10000000000000000', undefined])('refuses %j', (text) => {
    expect(parseTokenBase(text)).toBeUndefined();
  });
});

describe('nextFencingToken', () => {
  it('is the revision of the Lease that the grant replaces, with the base added', () => {
    expect(nextFencingToken({ resourceVersion: '1000', token: 3n, base: 0n })).toBe(1000n);
    expect(nextFencingToken({ resourceVersion: '1000', token: 3n, base: 50n })).toBe(1050n);
  });

  it('is one more than the last token when the revision fell behind, as after a restore', () => {
    expect(nextFencingToken({ resourceVersion: '1000', token: 5000n, base: 0n })).toBe(5001n);
  });

  it('grows over grants, re-creations and raises of the base, as long as the revision grows', () => {
    const step = fc.record({
      writes: fc.bigInt(1n, 1000n),
      recreated: fc.boolean(),
      raise: fc.bigInt(0n, 1000n),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 50 }), (steps) => {
        let revision = 1n;
        let base = 0n;
        let onLease = 0n;
        let highest = 0n;
        for (const { writes, recreated, raise } of steps) {
          if (recreated) onLease = 0n;
          base += raise;
          revision += writes;
          const token = nextFencingToken({ resourceVersion: revision.toString(), token: onLease, base });
          expect(token).toBeGreaterThan(highest);
          revision += 1n;
          onLease = token;
          highest = token;
        }
      }),
    );
  });
});
