import { describe, expect, it } from 'vitest';
import { sameJson } from '../../src/core/json.ts';

describe('two JSON values', () => {
  it.each([
    [1, 1],
    [null, null],
    [
      { a: 1, b: [{ c: 'x' }] },
      { b: [{ c: 'x' }], a: 1 },
    ],
    [{ a: undefined }, {}],
    [{}, { a: undefined }],
    [[], []],
  ])('%j and %j are the same', (a, b) => {
    expect(sameJson(a, b)).toBe(true);
  });

  it.each([
    [1, '1'],
    [null, {}],
    [{}, null],
    [[], {}],
    [{ a: 1 }, { a: 1, b: 2 }],
    [{ a: 1, b: 2 }, { a: 1 }],
    [{ a: 1 }, { b: 1 }],
    [{ a: null }, {}],
    [{ toString: undefined, a: 1 }, { b: 1 }],
    [
      [1, 2],
      [1, 2, 3],
    ],
    [{ a: [{ b: 1 }] }, { a: [{ b: 2 }] }],
  ])('%j and %j are not', (a, b) => {
    expect(sameJson(a, b)).toBe(false);
  });
});
