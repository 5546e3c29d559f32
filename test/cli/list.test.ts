import { describe, expect, test } from 'vitest';
import { renderRows, rowOf } from '../../src/cli/lock/row.ts';
import { aRawLock, NOW } from './support/objects.ts';

const waiter = (name: string, reason: string) => ({ kind: 'Pod', name, uid: `uid-${name}`, reason });

describe('a row of kilit list', () => {
  test('has holder, token, since when, waiters and who is next', () => {
    expect(rowOf(aRawLock())).toEqual({
      namespace: 'shop',
      name: 'billing',
      holder: 'a',
      node: 'n1',
      token: '900',
      heldSince: '2026-01-01T00:00:00.000000Z',
      waiters: 1,
      next: 'b',
      ready: 'True',
      readyMessage: null,
      leaseDurationSeconds: 15,
      takeoverDelaySeconds: 5,
      grants: 3,
      createdTime: '2025-12-31T00:05:00Z',
    });
  });

  test.each([
    ['a waiter that cannot start is passed over', [waiter('b', 'SidecarNotRunning'), waiter('c', 'Waiting')], 'c'],
    ['one that waits for an earlier holder is next', [waiter('b', 'PreviousHolder')], 'b'],
    ['one that waits for the policy is next', [waiter('b', 'GrantsPaused')], 'b'],
    ['nobody is next when none can start', [waiter('b', 'NotScheduled'), waiter('c', 'NodeTooOld')], null],
    ['nobody is next without waiters', [], null],
  ])('%s', (_, queue, next) => {
    expect(rowOf(aRawLock({ status: { queue } })).next).toBe(next);
  });

  test('of a lock that no operator has seen says so', () => {
    const { status: _, ...bare } = aRawLock();
    expect(rowOf(bare)).toMatchObject({
      holder: null,
      token: '0',
      ready: 'Unknown',
      readyMessage: 'No operator has looked at it yet.',
    });
  });
});

describe('the table', () => {
  const rows = [
    rowOf(aRawLock()),
    rowOf(
      aRawLock({
        name: 'ledger',
        namespace: 'bank',
        status: { holder: undefined, acquiredTime: undefined, waiters: 0, queue: [] },
      }),
    ),
  ];

  test('is like that of kubectl get dlock', () => {
    expect(renderRows(rows, { allNamespaces: false, wide: false }, NOW)).toBe(
      `NAME      HOLDER   TOKEN   HELD   WAITERS   NEXT   READY
billing   a        900     5m     1         b      True
ledger    -        900     -      0         -      True
`,
    );
  });

  test('names the namespace of each lock, and more when wide', () => {
    expect(renderRows(rows, { allNamespaces: true, wide: true }, NOW)).toBe(
      `NAMESPACE   NAME      HOLDER   TOKEN   HELD   WAITERS   NEXT   READY   NODE   LEASE   DELAY   GRANTS   AGE   WHY NOT READY
shop        billing   a        900     5m     1         b      True    n1     15s     5s      3        1d    -
bank        ledger    -        900     -      0         -      True    -      15s     5s      3        1d    -
`,
    );
  });
});
