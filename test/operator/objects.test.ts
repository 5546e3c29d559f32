import { describe, expect, it } from 'vitest';
import type { RawLease } from '../../src/core/lease.ts';
import { leaseView } from '../../src/core/lease.ts';
import { askedLease, brokenLease, grantedLease, podMarks } from '../../src/operator/objects.ts';
import { aHolder, aLease, aLock, aPod, heldBy, TERMS } from '../support/builders.ts';

const TIME = '2026-01-01T00:00:09.000000Z';

const present: RawLease = {
  metadata: {
    name: 'kilit.billing',
    namespace: 'shop',
    uid: 'uid-lease',
    resourceVersion: '1000',
    annotations: {
      note: 'kept',
      'kilit.dev/fencing-token': '900',
      'kilit.dev/takeover-delay-seconds': '7',
      'kilit.dev/grace-seconds': '40',
      'kilit.dev/node': 'n1',
      'kilit.dev/yield': 'MaxHold',
      'kilit.dev/broken-holder': 'z_uid-z',
    },
  },
  spec: {
    holderIdentity: 'a_uid-a',
    leaseDurationSeconds: 15,
    acquireTime: '2026-01-01T00:00:00.000000Z',
    renewTime: '2026-01-01T00:00:05.000000Z',
    leaseTransitions: 3,
  },
};

describe('the Lease', () => {
  it('of a grant carries neither a request to the former holder nor a broken one', () => {
    const terms = { ...TERMS, leaseDurationSeconds: 5 };
    const grant = { kind: 'Grant', lock: aLock(), lease: aLease(), pod: aPod('b'), token: 1000n, terms } as const;
    const { annotations } = grantedLease(present, { ...grant, ended: undefined }, TIME).metadata;
    expect(annotations).toEqual({
      note: 'kept',
      'kilit.dev/fencing-token': '1000',
      'kilit.dev/takeover-delay-seconds': '5',
      'kilit.dev/grace-seconds': '30',
      'kilit.dev/node': 'n1',
    });
  });

  it('of a broken lock keeps the terms and names the broken holder', () => {
    const lease = leaseView(present, 0, undefined);
    const holder = lease.holder ?? heldBy(aPod('a')).holder;
    if (holder === undefined) throw new Error('no holder');
    const request = { token: '900', by: 'alice', reason: 'hangs' };
    const action = { kind: 'Break', lock: aLock({ uid: 'u' }), lease, token: 1000n, holder, request } as const;
    const broken = brokenLease(present, action, TIME);
    expect(broken.spec).toEqual({
      holderIdentity: 'break-u_broken',
      leaseDurationSeconds: 15,
      acquireTime: TIME,
      renewTime: TIME,
      leaseTransitions: 4,
    });
    const view = leaseView(broken, 5, lease);
    expect(view).toMatchObject({ token: 1000n, terms: lease.terms, yieldAsked: undefined, observedAt: 5 });
    expect(view.broken).toMatchObject({ name: 'a', uid: 'uid-a', node: 'n1' });
  });

  it('that asks to yield is otherwise the same', () => {
    const asked = askedLease(present, 'NodeDrain');
    expect(asked).toEqual({
      ...present,
      metadata: {
        ...present.metadata,
        annotations: { ...present.metadata.annotations, 'kilit.dev/yield': 'NodeDrain' },
      },
    });
  });
});

describe('the view of a Lease', () => {
  const at = (renewTime: string, over: object = {}) => ({ ...present, spec: { ...present.spec, renewTime, ...over } });
  const unconfirmed = leaseView(at('2026-01-01T00:00:00.000000Z'), 10, undefined);
  const confirmed = leaseView(at('2026-01-01T00:00:01.000000Z'), 20, unconfirmed);

  it('keeps when the grant was first seen confirmed, over renewals', () => {
    expect(unconfirmed.confirmedAt).toBeUndefined();
    expect(confirmed).toMatchObject({ confirmedAt: 20, observedAt: 20 });
    expect(leaseView(at('2026-01-01T00:00:06.000000Z'), 30, confirmed)).toMatchObject({
      confirmedAt: 20,
      observedAt: 30,
    });
  });

  it('begins anew with another grant, also to the same Pod', () => {
    const again = { acquireTime: '2026-01-01T00:01:00.000000Z' };
    expect(leaseView(at('2026-01-01T00:01:01.000000Z', again), 40, confirmed).confirmedAt).toBe(40);
    expect(leaseView(at('2026-01-01T00:01:01.000000Z', { holderIdentity: '' }), 40, confirmed).confirmedAt).toBe(
      undefined,
    );
  });
});

it('the mark of a Pod that did not start is set, removed or left as it is', () => {
  const marks = { token: null, leader: null, queuedAt: '1' } as const;
  const key = 'kilit.dev/not-started';
  expect(podMarks(aHolder('a', 1n), marks).metadata.annotations).not.toHaveProperty([key]);
  expect(podMarks(aHolder('a', 1n), { ...marks, notStarted: null }).metadata.annotations).toHaveProperty([key], null);
});
