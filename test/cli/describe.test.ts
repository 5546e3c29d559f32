import { describe, expect, test } from 'vitest';
import { describeLock, type LockFacts } from '../../src/cli/lock/description.ts';
import { renderDescription } from '../../src/cli/lock/render-description.ts';
import { aNode } from '../support/builders.ts';
import { aRawLease, aRawLock, aRawPod, NOW } from './support/objects.ts';

const facts = (over: Partial<LockFacts> = {}): LockFacts => ({
  lock: aRawLock(),
  lease: { ok: true, value: aRawLease() },
  events: { ok: true, value: [] },
  pods: { ok: true, value: [] },
  nodes: { ok: true, value: [] },
  ...over,
});

const text = (over: Partial<LockFacts> = {}): string => renderDescription(describeLock(facts(over)), NOW);
const notRead = { ok: false, kind: 'forbidden', why: "'eve' may not list it" } as const;

describe('kilit describe', () => {
  test('tells all of a held lock', () => {
    expect(text()).toBe(`Lock     billing (namespace shop, 1d old)
Holder   Pod a on node n1, for 5m (since 2026-01-01T00:00:00.000000Z)
Token    900
Grants   3

Timings
  this grant      lease 15 s, renewed every 5 s; its programs are stopped 13.5 s after the last good renewal
  last renewal    3s ago, by the holder's clock
  if it is silent the next grant comes 20 s after the last renewal (lease 15 s, takeover delay 5 s), 30 s later if it is being deleted

Queue (1)
  1. b   next; Waiting: Next in line; Pod a holds the lock.

Conditions
  Ready=True for 1d   Ready: The lock can be granted.

Last losses
  none known; events are kept for an hour by default

Administration
  last break: none
  last handover: none
`);
  });

  test('tells that nobody holds or waits, and the timings of the next grant', () => {
    const lock = aRawLock({ status: { holder: undefined, waiters: 0, queue: [] } });
    const told = text({ lock, lease: { ok: true, value: aRawLease({ holder: '' }) } });
    expect(told).toContain('Holder   nobody\nToken    900 (of the last grant)\n');
    expect(told).toContain('  next grant      lease 15 s, takeover delay 5 s or 2 s for each container and 1 s');
    expect(told).toContain('Queue (0)\n  nobody waits\n');
    expect(told).not.toContain('this grant');
  });

  test('believes the Lease more than the status', () => {
    const lease = aRawLease({ holder: 'b_uid-b', token: '950', annotations: { 'kilit.dev/node': 'n2' } });
    expect(describeLock(facts({ lease: { ok: true, value: lease } }))).toMatchObject({
      holder: { pod: 'b', node: 'n2' },
      token: '950',
    });
  });

  test('takes the status where the Lease may not be read, and says so', () => {
    const told = text({ lease: notRead });
    expect(told).toContain('Holder   Pod a on node n1, for 5m');
    expect(told).toContain("Not read\n  the Lease ('eve' may not list it); holder and token are the status's\n");
  });

  test('says that a grant is not confirmed, and that a changed lease duration comes with the next grant', () => {
    const time = '2026-01-01T00:04:59.000000Z';
    const lease = aRawLease({ spec: { ...aRawLease().spec, acquireTime: time, renewTime: time } });
    const told = text({ lock: aRawLock({ leaseDurationSeconds: 60 }), lease: { ok: true, value: lease } });
    expect(told).toContain('last renewal    none: the grant is not confirmed yet');
    expect(told).toContain('next grant      lease 60 s');
  });

  test('tells the terms of a grant that goes by its Pod, and of programs that go on', () => {
    const annotations = { 'kilit.dev/takeover': 'PodGone', 'kilit.dev/on-renewal-failure': 'ContinueFenced' };
    const told = text({ lease: { ok: true, value: aRawLease({ annotations }) } });
    expect(told).toContain('its programs go on when renewals fail, until another holds (ContinueFenced)\n');
    expect(told).toContain(
      'if it is silent nobody is granted the lock before its Pod is known to have ended (PodGone)',
    );
    expect(told).not.toContain('20 s after the last renewal');
  });

  test('shows the newest losses first, of the operator and of sidecars, and no other event', () => {
    const event = (reason: string, eventTime: string) => ({
      metadata: {},
      reason,
      eventTime,
      note: `note of ${reason}.`,
    });
    const told = text({
      events: {
        ok: true,
        value: [
          event('Granted', '2026-01-01T00:00:00.000000Z'),
          event('Expired', '2026-01-01T00:00:00.000000Z'),
          event('Lost', '2026-01-01T00:04:00.000000Z'),
        ],
      },
    });
    expect(told).toContain('Last losses\n  1m ago   Lost: note of Lost.\n  5m ago   Expired: note of Expired.\n\n');
  });

  test('shows a request that stands, one that nobody can read, and the last that was carried out', () => {
    const lock = aRawLock({
      annotations: {
        'kilit.dev/break': JSON.stringify({ token: '900', by: 'alice', reason: 'frozen' }),
        'kilit.dev/handover': 'please',
      },
      status: { lastBreak: { token: '700', by: 'bob', reason: 'lost', time: '2026-01-01T00:00:00Z' } },
    });
    expect(text({ lock })).toContain(`Administration
  break of token 900 is asked for by alice: frozen
  last break: 5m ago, token 700, by bob: lost
  handover is asked for by an annotation that is no { token, by, reason }
  last handover: none
`);
  });
});

describe('a queue longer than the status shows', () => {
  const shown = Array.from({ length: 10 }, (_, i) => ({
    kind: 'Pod',
    name: `w${i}`,
    uid: `uid-w${i}`,
    reason: 'Waiting',
    message: `Number ${i + 1} in line.`,
  }));
  const lock = aRawLock({ status: { waiters: 12, queue: shown } });
  const pod = (name: string, at: number, nodeName: string | undefined) =>
    aRawPod(name, {
      metadata: { annotations: { 'kilit.dev/queued-at': String(at) } },
      spec: nodeName === undefined ? {} : { nodeName },
      status: { phase: 'Pending', initContainerStatuses: [{ name: 'kilit', state: { running: {} } }] },
    });
  const pods = {
    ok: true,
    value: [
      aRawPod('a'),
      pod('last', 30, undefined),
      pod('eleventh', 20, 'n1'),
      ...shown.map(({ name }, i) => pod(name, i, 'n1')),
    ],
  } as const;
  const { name, kubeletVersion, declaredFeatures } = aNode();
  const raw = {
    metadata: { name },
    status: { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo: { kubeletVersion }, declaredFeatures },
  };

  test('is completed from Pods, in order and with reasons, without the holder', () => {
    const { queue, unread, waiters } = describeLock(facts({ lock, pods, nodes: { ok: true, value: [raw] } }));
    expect(waiters).toBe(12);
    expect(unread).toEqual([]);
    expect(queue.map((entry) => entry.name)).toEqual([...shown.map((entry) => entry.name), 'eleventh', 'last']);
    expect(queue.slice(10)).toEqual([
      { name: 'eleventh', next: false, reason: 'Waiting', message: '' },
      { name: 'last', next: false, reason: 'NotScheduled', message: 'No node has been found for it yet.' },
    ]);
  });

  test('gives no reasons when nodes may not be read, since it would guess them', () => {
    const { queue, unread } = describeLock(facts({ lock, pods, nodes: notRead }));
    expect(queue.at(-1)).toEqual({ name: 'last', next: false, reason: 'Unknown', message: '' });
    expect(unread).toEqual(["why the waiters after the first 10 wait ('eve' may not list it)"]);
  });

  test('ends with how many more there are when Pods may not be read', () => {
    const told = text({ lock, pods: notRead });
    expect(told).toContain('  … and 2 more\n');
    expect(told).toContain("Not read\n  waiters after the first 10 ('eve' may not list it)\n");
  });
});
