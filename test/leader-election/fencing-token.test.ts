import { describe, expect, test } from 'vitest';
import { type FencedLease, fencingTokenOf } from '../../src/leader-election/index.ts';
import { aWorld } from './support/world.ts';

const ACQUIRED = '2026-12-01T05:00:00.120000Z';
const LATER = '2026-12-01T05:01:00.120000Z';
const OWN = { identity: 'a', acquireTime: ACQUIRED };

function aLease({
  holderIdentity = 'a',
  acquireTime = ACQUIRED,
  token = '4711',
  mintedFor = ACQUIRED,
}: Partial<Record<'holderIdentity' | 'acquireTime' | 'token' | 'mintedFor', string>> = {}): FencedLease {
  return {
    metadata: {
      name: 'app',
      annotations: { 'kilit.dev/fencing-token': token, 'kilit.dev/fenced-acquire-time': mintedFor },
    },
    spec: { holderIdentity, acquireTime },
  };
}

describe('fencingTokenOf', () => {
  test('takes the token of a Lease that is held in its own term', () => {
    expect(fencingTokenOf(aLease(), OWN)).toBe(4711n);
    expect(fencingTokenOf(aLease({ token: '999999999999999999' }), OWN)).toBe(999_999_999_999_999_999n);
  });

  test.each(['2026-12-01T05:00:00.12Z', '2026-12-01T05:00:00.120Z'])('takes %s for the same time', (mintedFor) => {
    expect(fencingTokenOf(aLease({ mintedFor }), OWN)).toBe(4711n);
  });

  test('takes times of a whole second for the same', () => {
    const own = { identity: 'a', acquireTime: '2026-12-01T05:00:10.000000Z' };
    const lease = aLease({ acquireTime: '2026-12-01T05:00:10Z', mintedFor: '2026-12-01T05:00:10Z' });
    expect(fencingTokenOf(lease, own)).toBe(4711n);
  });

  test.each([
    {
      name: 'the winner’s, when a loser wakes up',
      lease: aLease({ holderIdentity: 'b', acquireTime: LATER, mintedFor: LATER }),
      says: "[NotHolder] Lease 'app' is held by 'b', not by 'a'. This process is not the leader; let it exit.",
    },
    {
      name: 'that of another who acquired in the same microsecond',
      lease: aLease({ holderIdentity: 'b' }),
      says: "[NotHolder] Lease 'app' is held by 'b'",
    },
    { name: 'that of a free Lease', lease: aLease({ holderIdentity: '' }), says: '[NotHolder]' },
    {
      name: 'that of a later term of its own, or of a namesake',
      lease: aLease({ acquireTime: LATER, mintedFor: LATER }),
      says: `[NotHolder] Lease 'app' was acquired by 'a' at ${LATER}, not at ${ACQUIRED}`,
    },
    {
      name: 'that of a Lease which was created and not renewed yet',
      lease: aLease({ token: '0', mintedFor: '' }),
      says: "[NotMinted] Lease 'app' has no fencing token yet: it comes with the next renewal",
    },
    {
      name: 'that of a Lease which nobody fences',
      lease: { metadata: { name: 'app' }, spec: { holderIdentity: 'a', acquireTime: ACQUIRED } },
      says: '[NotMinted]',
    },
    {
      name: 'the one of a former holder, when nobody mints any more',
      lease: aLease({ mintedFor: '2026-12-01T04:00:00.000000Z' }),
      says: "[NotMinted] Lease 'app': its token 4711 was minted for a term that began at '2026-12-01T04:00:00.000000Z'",
    },
    { name: 'what is no token', lease: aLease({ token: '1e9' }), says: '[NotMinted]' },
    { name: 'that of no Lease at all', lease: {}, says: '[NotHolder]' },
  ])('does not take $name', ({ lease, says }) => {
    expect(() => fencingTokenOf(lease, OWN)).toThrow(says);
  });

  test('does not take a time that is missing on both sides for the same', () => {
    const lease = aLease({ acquireTime: '', mintedFor: '' });
    expect(() => fencingTokenOf(lease, { identity: 'a', acquireTime: '' })).toThrow('[NotHolder]');
  });

  test('is told by the elector in which term the work runs', async () => {
    const { contender, server, until } = aWorld();
    const a = contender('a');
    a.start();
    await until(() => a.elector.isLeader());
    expect(a.acquireTimes).toEqual([server.lease()?.record.acquireTime]);
  });
});
