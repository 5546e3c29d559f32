/** `onRenewalFailure: ContinueFenced`, as the operator sees it: an expired holder that nobody waits for may come back. */
import { describe, expect, it } from 'vitest';
import { decide } from '../../src/core/decide.ts';
import type { Observed } from '../../src/core/observed.ts';
import type { PodView } from '../../src/core/pod.ts';
import { aHolder, aPod, at, heldBy, observedLock, TERMS } from '../support/builders.ts';

const terms = { ...TERMS, onRenewalFailure: 'ContinueFenced' } as const;
const holder = aHolder('a', 900n);
const from = (pods: readonly PodView[], over: Partial<Observed> = {}) =>
  observedLock({ lease: heldBy(holder, { terms }), pods, ...over });
const wanted = (observed: Observed) =>
  decide(observed, at(1e9)).actions.flatMap((action) => (action.kind === 'WriteStatus' ? [] : [action.kind]));

describe('an expired holder by ContinueFenced', () => {
  it('is left on as long as nobody is ready to follow it, and the lock says so', () => {
    const behind = aPod('b', { queuedAt: 1n, sidecarRunning: false });
    for (const pods of [[holder], [holder, behind]]) expect(wanted(from(pods))).toEqual([]);
    const status = decide(from([holder]), at(1e9)).actions.find(({ kind }) => kind === 'WriteStatus');
    expect(status).toMatchObject({
      status: {
        holder: { name: 'a' },
        waiters: 0,
        conditions: [
          {},
          {
            type: 'Held',
            status: 'True',
            reason: 'HolderSilent',
            message:
              'Held by Pod a with token 900, which does not renew any more; its program may be alive. By onRenewalFailure ' +
              'ContinueFenced it may renew again; the next waiter that is ready is granted the lock at once.',
          },
        ],
      },
    });
  });

  it('is followed at once by a waiter that is ready', () => {
    expect(wanted(from([holder, aPod('b', { queuedAt: 1n })]))).toEqual(['Grant']);
  });

  it.each([
    ['is being deleted', [{ ...holder, deleting: true }]],
    ['is evicted', [{ ...holder, disrupted: true }]],
    ['has failed', [{ ...holder, phase: 'Failed' }]],
    ['is gone', []],
  ])('is not left on when its Pod %s', (_, pods) => {
    expect(wanted(from(pods))).toContain('Free');
  });

  it('is not left on by Stop', () => {
    expect(wanted(observedLock({ lease: heldBy(holder), pods: [holder] }))).toEqual(['Free']);
  });
});
