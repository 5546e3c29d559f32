import { describe, expect, test } from 'vitest';
import { duration, plural, since, some, table } from '../../src/cli/text.ts';

describe('duration', () => {
  test.each([
    [0, '0s'],
    [999, '0s'],
    [-5, '0s'],
    [59_000, '59s'],
    [60_000, '1m'],
    [192_000, '3m12s'],
    [3_600_000, '1h'],
    [3_605_000, '1h'],
    [3_660_000, '1h1m'],
    [2 * 86_400_000 + 4 * 3_600_000 + 7_000, '2d4h'],
  ])('%d ms is %s', (milliseconds, text) => {
    expect(duration(milliseconds)).toBe(text);
  });
});

test('since is empty for no time and for what is none', () => {
  expect([since(undefined, 0), since('', 0), since('soon', 0), since('1970-01-01T00:00:01.000000Z', 62_000)]).toEqual([
    '',
    '',
    '',
    '1m1s',
  ]);
});

test('a table pads each column to its widest cell, shows empty cells as -, and ends no line in spaces', () => {
  expect(
    table(
      ['NAME', 'HOLDER'],
      [
        ['billing', ''],
        ['a', 'pod-1'],
      ],
    ),
  ).toBe('NAME      HOLDER\nbilling   -\na         pod-1\n');
});

test('a list stays short', () => {
  expect([some(['a', 'b'], 2), some(['a', 'b', 'c', 'd'], 2), plural(1, 'failure'), plural(2, 'failure')]).toEqual([
    'a, b',
    'a, b and 2 more',
    '1 failure',
    '2 failures',
  ]);
});
