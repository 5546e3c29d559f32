import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { differentMicroTime, formatMicroTime, parseMicroTime } from '../../src/core/micro-time.ts';

const LATEST = 253_402_300_799_999_999n;
const times = fc.bigInt({ min: 0n, max: LATEST });

describe('formatMicroTime', () => {
  test('writes six fraction digits (kubernetes-client/javascript#828)', () => {
    expect(formatMicroTime(1_767_225_600_000_000n)).toBe('2026-01-01T00:00:00.000000Z');
    expect(formatMicroTime(1_767_225_600_000_001n)).toBe('2026-01-01T00:00:00.000001Z');
    expect(formatMicroTime(1_767_225_600_120_000n)).toBe('2026-01-01T00:00:00.120000Z');
  });

  test('refuses what four digits of a year cannot write', () => {
    expect(() => formatMicroTime(-1n)).toThrow(RangeError);
    expect(() => formatMicroTime(LATEST + 1n)).toThrow(RangeError);
  });
});

describe('parseMicroTime', () => {
  test('reads back what was written', () => {
    fc.assert(
      fc.property(times, (micros) => {
        expect(parseMicroTime(formatMicroTime(micros))).toBe(micros);
      }),
    );
  });

  test.each([
    '',
    '2026-01-01T00:00:00Z',
    '2026-01-01T00:00:00.000Z',
    '2026-01-01T00:00:00.0000000Z',
    '2026-01-01T00:00:00.000000+00:00',
    '2026-02-30T00:00:00.000000Z',
    '2026-13-01T00:00:00.000000Z',
    '2026-01-01T24:00:00.000000Z',
    '1969-12-31T23:59:59.999999Z',
    ' 2026-01-01T00:00:00.000000Z',
  ])('does not read %j', (text) => {
    expect(parseMicroTime(text)).toBeUndefined();
  });
});

describe('differentMicroTime', () => {
  test('keeps a time that nobody has', () => {
    expect(differentMicroTime(5n, ['1970-01-01T00:00:00.000004Z'])).toBe('1970-01-01T00:00:00.000005Z');
  });

  test('moves on from a time that is taken, and from the next', () => {
    const taken = ['1970-01-01T00:00:00.000005Z', '1970-01-01T00:00:00.000006Z'];
    expect(differentMicroTime(5n, taken)).toBe('1970-01-01T00:00:00.000007Z');
  });

  test('never repeats one, also at the end of time', () => {
    fc.assert(
      fc.property(
        fc.oneof(times, fc.constant(LATEST)),
        fc.array(fc.integer({ min: 0, max: 3 }), { maxLength: 4 }),
        (wish, steps) => {
          const taken = steps.map((add) => formatMicroTime(wish + BigInt(add) > LATEST ? 0n : wish + BigInt(add)));
          expect(taken).not.toContain(differentMicroTime(wish, taken));
        },
      ),
    );
  });
});
