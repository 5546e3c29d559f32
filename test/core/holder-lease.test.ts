import { describe, expect, test } from 'vitest';
import { readLease, recordsGrant } from '../../src/core/holder-lease.ts';
import { aLease, GRANT, granted, ME, OTHER, observed, T0, T1 } from './holder-fixtures.ts';

describe('a Lease', () => {
  test('is read with its grant', () => {
    expect(readLease(aLease())).toMatchObject({
      kind: 'lease',
      lease: {
        revision: 100n,
        holder: ME,
        confirmed: false,
        grant: { token: 42n, acquireTime: T0, leaseDurationMs: 15_000 },
      },
    });
  });

  test('is confirmed once its renewTime differs from its acquireTime', () => {
    expect(observed({ renewTime: T1 }).confirmed).toBe(true);
  });

  test('is not confirmed while they are the same', () => {
    expect(granted.confirmed).toBe(false);
  });

  test('is free without a holder', () => {
    expect(readLease({ metadata: { resourceVersion: '5' } })).toMatchObject({ kind: 'lease', lease: { holder: '' } });
  });

  test('is deleted once it has a deletionTimestamp', () => {
    expect(readLease(aLease({ deletionTimestamp: '2026-01-01T00:00:00Z' }))).toEqual({
      kind: 'deleted',
      revision: 100n,
    });
  });

  test.each([
    ['null', null],
    ['text', 'lease'],
    ['a list', []],
    ['no metadata', {}],
    ['no revision', { metadata: {} }],
    ['a revision that is no number', { metadata: { resourceVersion: 'x1' } }],
    ['a holder that is no text', { metadata: { resourceVersion: '1' }, spec: { holderIdentity: 5 } }],
  ])('cannot be read from %s', (_name, object) => {
    expect(readLease(object)).toMatchObject({ kind: 'unreadable' });
  });
});

describe('a grant', () => {
  test.each([undefined, '', '0', '007', '+5', '-1', '1e3', ' 5', '0x5', '1000000000000000000', '9'.repeat(40)])(
    'is not read with the token %j, and the fault shows it',
    (token) => {
      expect(observed({ token }).grant).toMatchObject({ fault: expect.stringContaining('kilit.dev/fencing-token') });
    },
  );

  test.each(['1', '9007199254740993', '999999999999999999'])('is read with the token %s, exactly', (token) => {
    expect(observed({ token }).grant).toMatchObject({ token: BigInt(token) });
  });

  test.each([undefined, 0, -5, 1.5, '15', 86_401, null])('is not read with the duration %j', (seconds) => {
    expect(observed({ seconds }).grant).toMatchObject({ fault: expect.stringContaining('leaseDurationSeconds') });
  });

  test.each([undefined, '', 'yesterday', '2026-01-01T00:00:00Z', 5])(
    'is not read with the acquireTime %j',
    (acquireTime) => {
      expect(observed({ acquireTime }).grant).toMatchObject({ fault: expect.stringContaining('acquireTime') });
    },
  );
});

describe('a Lease records a grant', () => {
  test('also with another duration, which belongs to the next grant', () => {
    expect(recordsGrant(observed({ seconds: 60 }), ME, GRANT)).toBe(true);
  });

  test.each([
    ['another holder', observed({ holder: OTHER })],
    ['no holder', observed({ holder: '' })],
    ['another token', observed({ token: '43' })],
    ['another acquireTime', observed({ acquireTime: T1 })],
    ['a garbled token', observed({ token: '042' })],
    ['a name that begins like mine', observed({ holder: `${ME}0` })],
    ['nothing', undefined],
  ])('not with %s', (_name, lease) => {
    expect(recordsGrant(lease, ME, GRANT)).toBe(false);
  });
});
