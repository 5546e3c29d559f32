import { describe, expect, it } from 'vitest';
import type { DistributedLockStatus } from '../../src/api/generated/distributedlock.ts';
import type { Action } from '../../src/core/actions.ts';
import { decide } from '../../src/core/decide.ts';
import type { LockView } from '../../src/core/lock.ts';
import type { Observed } from '../../src/core/observed.ts';
import type { PodView } from '../../src/core/pod.ts';
import { aHolder, aLease, aLock, aPod, at, heldBy, observedLock } from '../support/builders.ts';
import { applied } from '../support/model.ts';

const asked = (token: string) => JSON.stringify({ token, by: 'alice', reason: 'hangs' });
const holder = aHolder('holder', 900n);
const waiter = aPod('w', { queuedAt: 1n });

function requested(
  requests: Partial<LockView['requests']>,
  over: Partial<Observed> = {},
  status: DistributedLockStatus = {},
): Observed {
  const lock = aLock({ requests: { break: undefined, handover: undefined, ...requests }, status });
  return observedLock({ lease: heldBy(holder), pods: [holder, waiter], ...over, lock });
}

const of = (action: Action): readonly string[] => {
  switch (action.kind) {
    case 'Break':
      return [`Break ${action.holder.name} ${action.token}`];
    case 'AskYield':
      return [`AskYield ${action.holder.name} ${action.reason} ${action.request?.by ?? ''}`];
    case 'DropRequest':
      return [`DropRequest ${action.request}${action.why === undefined ? '' : `: ${action.why}`}`];
    case 'WriteStatus': {
      const { lastBreak, lastHandover } = action.status;
      const last = lastBreak ?? lastHandover;
      return [`WriteStatus${last === undefined ? '' : ` ${last.by} ${last.token} ${last.reason}`}`];
    }
    case 'Grant':
      return [`Grant ${action.pod.name} ${action.token}`];
    default:
      return [action.kind];
  }
};

const wanted = (observed: Observed, instant = 1000) => decide(observed, at(instant)).actions.flatMap(of);

/** The passes until nothing is left to do, and what is there then. */
function settled(start: Observed, instant = 1000): { readonly passes: readonly string[]; readonly end: Observed } {
  const passes: string[] = [];
  let end = start;
  for (let pass = 0; pass < 20; pass += 1) {
    const { actions } = decide(end, at(instant));
    if (actions.length === 0) return { passes, end };
    passes.push(actions.flatMap(of).join(' + '));
    for (const action of actions) end = applied(end, action, at(instant));
  }
  throw new Error(`Never comes to rest: ${passes.join(' → ')}`);
}

describe('break', () => {
  it('is recorded first, then moves the token, then goes', () => {
    const { passes, end } = settled(requested({ break: asked('900') }));
    expect(passes.slice(0, 4)).toEqual([
      'WriteStatus alice 900 hangs',
      'Break holder 1000',
      expect.stringContaining('DropRequest break'),
      'WriteStatus alice 900 hangs',
    ]);
    expect(end.lease).toMatchObject({
      token: 1000n,
      holder: { identity: 'break-uid-lock_broken' },
      broken: { name: 'holder', uid: 'uid-holder' },
      terms: heldBy(holder).terms,
    });
    expect(end.lock).toMatchObject({
      requests: { break: undefined },
      status: { fencingToken: '1000', lastBreak: { by: 'alice', reason: 'hangs', token: '900' } },
    });
    expect(end.lock?.status.holder).toBeUndefined();
    expect(end.lock?.status.conditions?.[1]).toMatchObject({ status: 'Unknown', reason: 'Broken' });
  });

  it('lets the next be granted the lock when the lease and the takeover delay of the broken grant have passed', () => {
    const { end } = settled(requested({ break: asked('900') }), 1000);
    expect(decide(end, at(1000)).recheckAt).toBe(21_000);
    expect(wanted(end, 20_999)).toEqual([]);
    expect(wanted(end, 21_000)).toContain('Grant w 1001');
  });

  it('waits for its grace period too when the broken holder is being deleted', () => {
    const dying = { ...holder, deleting: true };
    const { end } = settled(requested({ break: asked('900') }, { pods: [dying, waiter] }), 1000);
    expect(wanted(end, 54_999)).toEqual([]);
    expect(wanted(end, 55_000)).toContain('Grant w 1001');
  });

  it('lets the next be granted the lock at once when the broken holder is certainly dead', () => {
    const { end } = settled(requested({ break: asked('900') }), 1000);
    const dead: readonly PodView[] = [{ ...holder, confirmedDead: true, phase: 'Failed' }, waiter];
    const observed = { ...end, pods: dead, lastSeen: (uid: string) => dead.find((pod) => pod.uid === uid) };
    expect(wanted(observed, 1001)).toContain('Grant w 1001');
  });

  it('ends with a free lock when nobody waits', () => {
    const { end } = settled(requested({ break: asked('900') }, { pods: [] }), 1000);
    expect(wanted(end, 60_000)).toContain('Free');
  });

  it('breaks a grant that was not confirmed', () => {
    const lease = heldBy(holder, { renewTime: heldBy(holder).acquireTime, confirmedAt: undefined });
    expect(settled(requested({ break: asked('900') }, { lease })).passes).toContain('Break holder 1000');
  });

  it('waits until grants are given again: without the policy any token could be written', () => {
    const gate = { open: false, reason: 'PolicyNotEnforced', message: 'The binding is missing.' } as const;
    const { passes, end } = settled(requested({ break: asked('900') }, { gate }));
    expect(passes.join()).not.toContain('Break');
    expect(end.lock?.requests.break).toBe(asked('900'));
  });

  it('stands in the way of the deletion of the lock until its holder is stopped', () => {
    const { end } = settled(requested({ break: asked('900') }), 1000);
    const deleting: Observed = { ...end, lock: { ...aLock(), ...end.lock, deleting: true } };
    const { end: waiting } = settled(deleting, 1000);
    expect(waiting.lease?.holder?.identity).toBe('break-uid-lock_broken');
    expect(settled(waiting, 21_000).end.lock).toBeUndefined();
  });
});

describe('handover', () => {
  it('is recorded first, then asks the holder to yield, then goes; nobody need wait for the lock', () => {
    const { passes, end } = settled(requested({ handover: asked('900') }, { pods: [holder] }));
    expect(passes.slice(0, 3)).toEqual([
      'WriteStatus alice 900 hangs',
      'AskYield holder Requested alice',
      'DropRequest handover',
    ]);
    expect(end.lease).toMatchObject({ token: 900n, yieldAsked: 'Requested' });
    expect(end.lock?.status.lastHandover).toMatchObject({ by: 'alice', reason: 'hangs', token: '900' });
  });

  it('counts as carried out when the holder was asked already', () => {
    const { passes } = settled(
      requested({ handover: asked('900') }, { lease: heldBy(holder, { yieldAsked: 'MaxHold' }) }),
    );
    expect(passes.slice(0, 2)).toEqual(['WriteStatus alice 900 hangs', 'DropRequest handover']);
  });

  it('waits for the confirmation of the grant', () => {
    const lease = heldBy(holder, { renewTime: heldBy(holder).acquireTime, confirmedAt: undefined });
    expect(settled(requested({ handover: asked('900') }, { lease })).passes.join()).not.toContain('AskYield');
  });

  it('is outrun by a break of the same grant', () => {
    const { passes, end } = settled(requested({ handover: asked('900'), break: asked('900') }));
    expect(passes[1]).toBe('Break holder 1000');
    expect(end.lock?.requests).toEqual({ break: undefined, handover: undefined });
  });
});

describe('a request that cannot be carried out goes, and says why', () => {
  it.each([
    ['of an earlier grant', { break: asked('899') }, {}, 'It names token 899; the present grant has token 900.'],
    [
      'while nobody holds',
      { handover: asked('900') },
      { lease: aLease(), pods: [] },
      'It names token 900; nobody holds the lock.',
    ],
    ['that is no JSON', { break: 'now!' }, {}, 'It is not {"token":"…","by":"…","reason":"…"}.'],
    ['with a token that is a number', { break: '{"token":900,"by":"a","reason":"b"}' }, {}, 'It is not'],
    ['that is null', { break: 'null' }, {}, 'It is not'],
  ])('one %s', (_, requests, over, why) => {
    const { passes, end } = settled(requested(requests, over));
    expect(passes[0]).toContain(`: ${why}`);
    expect(passes.join()).not.toMatch(/(^|,|\+ )Break |AskYield/);
    expect(end.lock?.requests).toEqual({ break: undefined, handover: undefined });
  });

  it('but not while writing fails: then the status comes first', () => {
    const observed = requested({ break: asked('899') }, { failure: 'DropRequest failed: no' });
    expect(wanted(observed)).toEqual(['WriteStatus']);
  });
});

describe('an operator that died in the middle of a break', () => {
  const record = { by: 'alice', reason: 'hangs', time: '2026-01-01T00:00:00Z', token: '900' };

  it('goes on after the record', () => {
    expect(wanted(requested({ break: asked('900') }, {}, { lastBreak: record }))).toContain('Break holder 1000');
  });

  it('does not break the next grant after the token has moved', () => {
    const next = aHolder('w', 1000n);
    const observed = requested(
      { break: asked('900') },
      { lease: heldBy(next, { token: 1000n }), pods: [next] },
      { lastBreak: record },
    );
    expect(wanted(observed)).toEqual(['DropRequest break']);
  });
});
