import { describe, expect, test } from 'vitest';
import { type Seen, stageOf, stageText, verdictOf } from '../../src/cli/request/stage.ts';

const REQUEST = { token: '900', by: 'alice', reason: 'frozen' };
const seen = (over: Partial<Seen> = {}): Seen => ({
  standing: REQUEST,
  recorded: undefined,
  token: 900n,
  holder: 'a',
  breaking: false,
  yielding: false,
  ...over,
});

describe('a request has come', () => {
  test.each<[string, Seen, string]>([
    ['to asked: it stands on the lock', seen(), 'asked'],
    ['to yielding: the Lease asks the holder', seen({ yielding: true }), 'yielding'],
    ['to yielding also when the request is gone', seen({ yielding: true, standing: undefined }), 'yielding'],
    ['to recorded: the status has this token', seen({ recorded: '900' }), 'recorded'],
    ['to recorded also when the request is gone', seen({ standing: undefined, recorded: '900' }), 'recorded'],
    ['to dropped: gone, and an older one is recorded', seen({ standing: undefined, recorded: '800' }), 'dropped'],
    ['to dropped: another request stands there', seen({ standing: { ...REQUEST, token: '800' } }), 'dropped'],
    ['to dropped: it was written over by no request', seen({ standing: 'unreadable' }), 'dropped'],
    ['to released: nobody holds, the token is the same', seen({ holder: undefined }), 'released'],
    [
      'to stopping: the stand-in holds with a greater token',
      seen({ token: 950n, holder: 'break-uid-lock', breaking: true }),
      'stopping',
    ],
    ['to freed: the token has moved and nobody holds', seen({ token: 950n, holder: undefined }), 'freed'],
    ['to passed: another Pod holds with a greater token', seen({ token: 950n, holder: 'b' }), 'passed'],
    [
      'to passed, also to a Pod whose name is like the stand-in',
      seen({ token: 950n, holder: 'break-glass' }),
      'passed',
    ],
    ['to passed: the same Pod holds again, with a greater token', seen({ token: 950n }), 'passed'],
  ])('%s', (_, now, kind) => {
    const stage = stageOf(REQUEST, now);
    expect(stage.kind).toBe(kind);
    expect(stageText('break', stage)).toMatch(/\w/);
  });

  test('no stage ends the waiting at once but the two that are the end', () => {
    const kinds = (standsMs: number, wanted: string) =>
      [
        seen(),
        seen({ yielding: true }),
        seen({ standing: undefined, recorded: '900' }),
        seen({ standing: undefined }),
        seen({ holder: undefined }),
        seen({ token: 950n, holder: 'break-x', breaking: true }),
        seen({ token: 950n, holder: undefined }),
        seen({ token: 950n, holder: 'b' }),
      ]
        .map((one) => stageOf(REQUEST, one))
        .filter((stage) => verdictOf(stage, standsMs) === wanted)
        .map(({ kind }) => kind);
    expect(kinds(0, 'ok')).toEqual(['freed', 'passed']);
    expect(kinds(0, 'failed')).toEqual([]);
    expect(kinds(60_000, 'ok')).toEqual(['released', 'freed', 'passed']);
    expect(kinds(60_000, 'failed')).toEqual(['dropped']);
  });
});
