import { describe, expect, it } from 'vitest';
import type { Action } from '../../src/core/actions.ts';
import { eventsOf } from '../../src/operator/events.ts';
import { aHolder, aLease, aLock, aPod, heldBy, TERMS } from '../support/builders.ts';

const told = (action: Action) =>
  eventsOf(action).map(({ about, type, reason, note }) => [about.kind, type, reason, note]);

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
      terms: TERMS,
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

  it('tell the lock why its holder was asked to yield', () => {
    const lease = heldBy(aPod('a'));
    const { holder } = lease;
    if (holder === undefined) throw new Error('no holder');
    const ask = { kind: 'AskYield', lock: aLock(), lease, holder, by: undefined, request: undefined } as const;
    expect(told({ ...ask, reason: 'NewerRevision', by: aPod('b') })).toEqual([
      [
        'DistributedLock',
        'Normal',
        'YieldAsked',
        'Pod a (token 900) was asked to yield (NewerRevision): a newer version of its workload waits, for Pod b.',
      ],
    ]);
    expect(told({ ...ask, reason: 'NotStarted' })).toMatchObject([['DistributedLock', 'Warning', 'YieldAsked', {}]]);
    const request = { token: '900', by: 'alice', reason: 'upgrade' };
    expect(told({ ...ask, reason: 'Requested', request })).toEqual([
      ['DistributedLock', 'Normal', 'HandedOver', 'alice asked Pod a (token 900) to hand the lock over: upgrade'],
    ]);
  });

  it('tell who broke a grant and why, once', () => {
    const lease = heldBy(aPod('a'));
    const { holder } = lease;
    if (holder === undefined) throw new Error('no holder');
    const request = { token: '900', by: 'alice', reason: 'hangs' };
    const lock = aLock();
    expect(told({ kind: 'Break', lock, lease, holder, token: 1000n, request })).toEqual([
      [
        'DistributedLock',
        'Warning',
        'Broken',
        'alice broke the grant of Pod a (token 900, now 1000): hangs. Nobody is granted the lock until that Pod is stopped.',
      ],
    ]);
    expect(told({ kind: 'Free', lock, lease, ended: { holder, reason: 'Broken' } })).toEqual([]);
  });

  it('tell of a request only when it was not carried out', () => {
    const drop = { kind: 'DropRequest', lock: aLock(), request: 'break' } as const;
    expect(told({ ...drop, why: undefined })).toEqual([]);
    expect(told({ ...drop, why: 'It is old.' })).toEqual([
      [
        'DistributedLock',
        'Warning',
        'RequestDropped',
        'The request kilit.dev/break was taken off and not carried out. It is old.',
      ],
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
