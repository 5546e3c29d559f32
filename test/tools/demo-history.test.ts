import { describe, expect, it } from 'vitest';
import { firstPrint, type Printed, parsePrinted, staleLines } from '../../tools/demo/history.ts';

const line = (pod: string, token: bigint, at: number): Printed => ({ uid: `uid-${pod}`, pod, token, at });

describe('a line of a program', () => {
  const of = { uid: 'uid-a', pod: 'a' };

  it('is read with its time and its token, whatever its length', () => {
    expect(parsePrinted('2026-01-31T12:00:00.123456789Z token 900000000000000001', of)).toEqual({
      ...of,
      token: 900000000000000001n,
      at: Date.UTC(2026, 0, 31, 12, 0, 0, 123),
    });
  });

  it('is read when the program says more after its token', () => {
    const read = parsePrinted('2026-01-31T12:00:00Z token 41: about to charge customer 3 (Cleo)', of);
    expect(read?.token).toBe(41n);
  });

  it.each([
    '',
    'token 5',
    '2026-01-31T12:00:00Z token 5th',
    '2026-01-31T12:00:00Z token undefined',
    'yesterday token 5',
  ])("is not read from '%s'", (text) => {
    expect(parsePrinted(text, of)).toBeUndefined();
  });
});

describe('what the programs printed', () => {
  it('has no stale line when each program ended before the next began', () => {
    expect(staleLines([line('a', 5n, 1), line('a', 5n, 2), line('b', 9n, 3), line('b', 9n, 4)])).toEqual([]);
  });

  it('has one for each line of an old token after a new one, in the order of time and not of reading', () => {
    const late = line('a', 5n, 4);
    expect(staleLines([late, line('b', 9n, 3), line('a', 5n, 2), line('b', 9n, 5)])).toEqual([late]);
  });

  it('tells when a token was printed first', () => {
    expect(firstPrint([line('b', 9n, 8), line('b', 9n, 7), line('a', 5n, 1)], '9')).toBe(7);
  });

  it('does not tell it of a token that was never printed', () => {
    expect(firstPrint([line('a', 5n, 1)], '9')).toBeUndefined();
  });
});
