import { describe, expect, test } from 'vitest';
import { addLoss, backoffMs, formatLosses, LONG_HOLD_MS, NO_LOSSES, parseLosses } from '../../src/core/backoff.ts';

describe('the back-off', () => {
  test('waits not after the first loss, then 1, 2, 4 … 60 seconds', () => {
    const waits = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 500].map((count) => backoffMs({ count }) / 1000);
    expect(waits).toEqual([0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
  });

  test('counts losses in a row', () => {
    expect([1, 2, 3].reduce((losses) => addLoss(losses, 1000), NO_LOSSES)).toEqual({ count: 3 });
  });

  test('is forgotten after a long hold', () => {
    expect(addLoss({ count: 7 }, LONG_HOLD_MS)).toEqual({ count: 1 });
  });

  test('is not forgotten one millisecond earlier', () => {
    expect(addLoss({ count: 7 }, LONG_HOLD_MS - 1)).toEqual({ count: 8 });
  });

  test('does not count for ever', () => {
    expect(addLoss({ count: 1000 }, 0)).toEqual({ count: 1000 });
  });
});

describe('the file losses', () => {
  test('is read as it was written', () => {
    expect(parseLosses(formatLosses({ count: 12 }))).toEqual({ count: 12 });
  });

  test.each([
    '',
    '{}',
    '{"count":-1}',
    '{"count":1e9}',
    '{"count":"3"}',
    'null',
    '[]',
    '{"count":3',
    '{"count":12345}',
  ])('counts as no losses when it holds %j', (text) => {
    expect(parseLosses(text)).toEqual(NO_LOSSES);
  });
});
