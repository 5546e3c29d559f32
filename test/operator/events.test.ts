import { describe, expect, it } from 'vitest';
import type { Action } from '../../src/core/actions.ts';
import { eventsOf } from '../../src/operator/events.ts';
import { aHolder, aLease, aLock, aPod, heldBy } from '../support/builders.ts';

const told = (action: Action) =>
  eventsOf(action).map(({ about, type, reason, note }) => [about.kind, type, reason, note]);
const terms = { leaseDurationSeconds: 15, takeoverDelaySeconds: 5, gracePeriodSeconds: 30 };

describe('events', () => {
  it('tell lock and Pod of a grant, and why the former one ended', () => {
    const former = heldBy(aPod('a')).holder;
    if (former === undefined) throw new Error('no holder');
    const ended = { holder: former, reason: 'Expired' } as const;
    const grant = {
      kind: 'Grant',
      lock: aLock(),
      lease: aLease(),
      pod: aPod('b'),
      token: 1000n,
      terms,
      ended,
    } as const;
    expect(told(grant)).toEqual([
      ['DistributedLock', 'Warning', 'Expired', 'Pod a: did not renew in time.'],
      ['DistributedLock', 'Normal', 'Granted', 'Granted to Pod b with token 1000 after Pod a (did not renew in time).'],
      ['Pod', 'Normal', 'Granted', 'Was granted lock billing with token 1000.'],
    ]);
  });

  it('tell a Pod that lost, and its lock', () => {
    const pod = aHolder('a', 900n);
    const join = {
      kind: 'JoinQueue',
      pod,
      lock: aLock(),
      queuedAt: 1n,
      notStarted: false,
      reason: 'Lost',
      message: 'Lost it.',
    } as const;
    expect(told(join)).toEqual([
      ['Pod', 'Warning', 'Lost', 'Lost it.'],
      ['DistributedLock', 'Normal', 'Lost', 'Pod a lost the lock (token 900).'],
    ]);
  });

  it('tell nothing of marks, status and provisioning', () => {
    const lock = aLock();
    const silent: Action[] = [
      { kind: 'AddFinalizer', lock },
      { kind: 'CreateLease', lock },
      { kind: 'MarkHolder', pod: aPod('a'), token: 1n, notStarted: false },
      { kind: 'Unmark', pod: aPod('a') },
      { kind: 'WriteStatus', lock, status: {} },
    ];
    expect(silent.flatMap(told)).toEqual([]);
  });
});
