import { describe, expect, test } from 'vitest';
import type { Moment } from '../../src/leader-election/clock.ts';
import { decideElection, type ObservedElection } from '../../src/leader-election/decide.ts';
import type { LeaseRecord, StoredLease } from '../../src/leader-election/index.ts';
import { acquiredRecord, releasedRecord, renewedRecord } from '../../src/leader-election/records.ts';

const T1 = '2026-01-01T00:00:00.000001Z';
const T2 = '2026-01-01T00:00:00.000002Z';

const at = (monotonicSeconds: number, bootSeconds = monotonicSeconds): Moment => ({ monotonicSeconds, bootSeconds });

function aLease(record: Partial<LeaseRecord> = {}): StoredLease {
  return {
    resourceVersion: '7',
    record: {
      holderIdentity: 'b',
      leaseDurationSeconds: 15,
      acquireTime: T1,
      renewTime: T1,
      leaseTransitions: 3,
      ...record,
    },
  };
}

/** What `a` knows: the Lease was last seen to change at 100 s. */
function observed(lease: StoredLease | undefined, rest: Partial<ObservedElection> = {}): ObservedElection {
  return {
    identity: 'a',
    leaseDurationSeconds: 15,
    renewDeadlineSeconds: 10,
    lease,
    lastChange: lease && { record: lease.record, seenAt: at(100) },
    lastAttempt: undefined,
    term: undefined,
    ...rest,
  };
}

describe('waiting', () => {
  const wait = { kind: 'wait', holder: 'b' };

  test('creates a Lease that is not there', () => {
    expect(decideElection(observed(undefined), at(100))).toEqual({ kind: 'create' });
  });

  test('acquires a free Lease at once', () => {
    const lease = aLease({ holderIdentity: '' });
    expect(decideElection(observed(lease), at(100))).toEqual({ kind: 'acquire', lease });
  });

  test('acquires when the written duration has passed since the last observed change', () => {
    const lease = aLease();
    expect(decideElection(observed(lease), at(115))).toEqual({ kind: 'acquire', lease });
  });

  test('does not acquire one millisecond earlier', () => {
    expect(decideElection(observed(aLease()), at(114.999))).toEqual(wait);
  });

  test('kubernetes/kubernetes#47671: goes by the duration that the holder wrote, not by its own', () => {
    const lease = aLease({ leaseDurationSeconds: 60 });
    expect(decideElection(observed(lease), at(159.999))).toEqual(wait);
    expect(decideElection(observed(lease), at(160))).toEqual({ kind: 'acquire', lease });
  });

  test('goes by its own duration when the holder wrote none', () => {
    const lease = aLease({ leaseDurationSeconds: 0 });
    expect(decideElection(observed(lease), at(114.999))).toEqual(wait);
    expect(decideElection(observed(lease), at(115))).toEqual({ kind: 'acquire', lease });
  });

  test('believes the slower of its two clocks', () => {
    expect(decideElection(observed(aLease()), at(114, 200))).toEqual(wait);
    expect(decideElection(observed(aLease()), at(200, 114))).toEqual(wait);
  });

  test('takes over its own record at once: the reply to its acquisition was lost', () => {
    const lease = aLease({ holderIdentity: 'a' });
    expect(decideElection(observed(lease, { lastAttempt: T1 }), at(100))).toEqual({ kind: 'acquire', lease });
  });

  test('waits out the record of a namesake, which may be alive', () => {
    const lease = aLease({ holderIdentity: 'a' });
    expect(decideElection(observed(lease, { lastAttempt: T2 }), at(100))).toEqual({ kind: 'wait', holder: 'a' });
  });

  test('waits out a Lease that was deleted while somebody held it', () => {
    const { lastChange } = observed(aLease());
    expect(decideElection(observed(undefined, { lastChange }), at(114.999))).toEqual(wait);
    expect(decideElection(observed(undefined, { lastChange }), at(115))).toEqual({ kind: 'create' });
  });

  test('creates at once when the deleted Lease was free or its own', () => {
    const free = observed(aLease({ holderIdentity: '' }));
    expect(decideElection({ ...free, lease: undefined }, at(100))).toEqual({ kind: 'create' });
    const own = observed(aLease({ holderIdentity: 'a' }), { lastAttempt: T1 });
    expect(decideElection({ ...own, lease: undefined }, at(100))).toEqual({ kind: 'create' });
  });
});

describe('leading', () => {
  const term = { acquireTime: T1, renewSentAt: at(100) };
  const mine = aLease({ holderIdentity: 'a' });

  test('renews while the Lease is its own', () => {
    expect(decideElection(observed(mine, { term }), at(109.999))).toEqual({ kind: 'renew', lease: mine });
  });

  test.each<[string, StoredLease | undefined, Moment, string]>([
    ['the deadline has passed', mine, at(110), 'DeadlinePassed'],
    ['the deadline has passed by the boot clock only', mine, at(101, 110), 'DeadlinePassed'],
    ['somebody else holds', aLease(), at(101), 'OtherHolder'],
    ['nobody holds', aLease({ holderIdentity: '' }), at(101), 'OtherHolder'],
    ['a namesake holds', aLease({ holderIdentity: 'a', acquireTime: T2 }), at(101), 'SharedIdentity'],
    ['the Lease is gone', undefined, at(101), 'LeaseDeleted'],
  ])('loses when %s', (_when, lease, now, reason) => {
    expect(decideElection(observed(lease, { term }), now)).toEqual({ kind: 'lose', reason });
  });
});

describe('records', () => {
  const writer = { identity: 'a', leaseDurationSeconds: 15 };
  const MICROS = 1_767_225_600_000_001n;

  test('begins at zero transitions', () => {
    expect(acquiredRecord(writer, MICROS, undefined)).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: T1,
      renewTime: T1,
      leaseTransitions: 0,
    });
  });

  test('counts a change of holder, also from nobody', () => {
    expect(acquiredRecord(writer, MICROS, aLease().record).leaseTransitions).toBe(4);
    expect(acquiredRecord(writer, MICROS, aLease({ holderIdentity: '' }).record).leaseTransitions).toBe(4);
  });

  test('begins a new term of the same holder without a transition', () => {
    const record = acquiredRecord(writer, MICROS + 1n, aLease({ holderIdentity: 'a' }).record);
    expect(record).toMatchObject({ acquireTime: T2, leaseTransitions: 3 });
  });

  test('renews and releases without touching anything else', () => {
    const { record } = aLease();
    expect(renewedRecord(record, MICROS + 1n)).toEqual({ ...record, renewTime: T2 });
    expect(releasedRecord(record)).toEqual({ ...record, holderIdentity: '' });
  });

  test('never repeats a time, even when the wall clock was set back to it', () => {
    expect(renewedRecord(aLease().record, MICROS).renewTime).toBe(T2);
  });
});
