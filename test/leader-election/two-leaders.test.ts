import { expect, test } from 'vitest';
import { LOST, PROMPT } from './support/fake-api-server.ts';
import { aWorld } from './support/world.ts';

const OTHER = {
  holderIdentity: 'thief',
  leaseDurationSeconds: 15,
  acquireTime: '2026-01-01T00:00:00.000000Z',
  renewTime: '2026-01-01T00:00:00.000000Z',
  leaseTransitions: 9,
};

test('kubernetes/kubernetes#23731: a loser learns within one renewal that another took the Lease', async () => {
  const { contender, server, pass, until } = aWorld();
  const a = contender('a', { standsAgain: false });
  a.start();
  await pass(5);
  server.put(OTHER);
  expect(await until(() => !a.isWorking())).toBeLessThan(2.5);
  expect(a.elector.isLeader()).toBe(false);
  expect(a.outcomes).toEqual([{ kind: 'lost', reason: 'OtherHolder' }]);
  expect(a.stopReason()).toMatchObject({ code: 'Lost' });
  expect(server.lease()?.record.holderIdentity).toBe('thief');
});

test('kubernetes-retired/contrib#690, #2930: a frozen leader is none from its deadline on, though no timer fires', async () => {
  const { contender, pass, until } = aWorld();
  const a = contender('a');
  a.start();
  await until(() => a.elector.isLeader());
  a.machine.pause('freeze', 60);
  await pass(9.94);
  expect(a.elector.isLeader()).toBe(true);
  await pass(0.05);
  expect(a.elector.isLeader()).toBe(false);
  expect(a.isWorking()).toBe(true);
});

test('fabric8io/kubernetes-client#7350: does not lead before the reply to its acquisition', async () => {
  const { contender, server, network, pass } = aWorld();
  const a = contender('a');
  network('a', (verb) => (verb === 'get' ? PROMPT : { requestSeconds: 0.01, replySeconds: 1 }));
  a.start();
  await pass(1);
  expect(server.lease()?.record.holderIdentity).toBe('a');
  expect([a.elector.isLeader(), a.terms()]).toEqual([false, 0]);
  await pass(0.03);
  expect([a.elector.isLeader(), a.terms()]).toEqual([true, 1]);
});

test('fabric8io/kubernetes-client#2860: reads do not extend leadership when writes fail', async () => {
  const { contender, server, network, pass, until } = aWorld();
  const a = contender('a', { standsAgain: false });
  a.start();
  await until(() => a.elector.isLeader());
  network('a', (verb) => (verb === 'get' ? PROMPT : { ...PROMPT, isRefused: true }));
  // Conflicts make it read.
  for (let second = 0; second < 9; second += 1) {
    server.label();
    await pass(1);
  }
  expect(await until(() => !a.isWorking(), 3)).toBeLessThan(1.1);
  await pass(10);
  expect(a.outcomes).toEqual([{ kind: 'lost', reason: 'DeadlinePassed' }]);
});

test.each([1, 3])(
  'apache/curator#980: the deadline starts when good write %i was sent, not when it was answered',
  async (writes) => {
    const { time, contender, server, network, pass, until } = aWorld();
    const a = contender('a');
    network('a', (verb) => (verb === 'get' ? PROMPT : { requestSeconds: 0.01, replySeconds: 1.7 }));
    a.start();
    await until(() => server.writes.length === writes);
    const sentAt = (server.writes.at(-1)?.atSeconds ?? 0) - 0.01;
    await pass(1.72);
    network('a', LOST);
    await pass(sentAt + 9.98 - time.now());
    expect(a.elector.isLeader()).toBe(true);
    await pass(0.03);
    expect(a.elector.isLeader()).toBe(false);
  },
);

test('etcd-io/etcd#9921, #11456: a reply that arrives after the right it grants has ended grants nothing', async () => {
  const { contender, pass, until } = aWorld();
  const a = contender('a', { standsAgain: false });
  a.start();
  await pass(0.012);
  a.machine.pause('freeze', 12);
  await pass(12.005);
  expect([a.elector.isLeader(), a.terms()]).toEqual([false, 0]);
  expect(a.outcomes).toEqual([]);
  await until(() => a.elector.isLeader(), 3);
});

test('OptimalBits/bull#308: after a freeze a renewal that was answered in time, but read too late, saves nothing', async () => {
  const { contender, network, pass, until } = aWorld();
  const a = contender('a', { standsAgain: false });
  a.start();
  await until(() => a.elector.isLeader());
  network('a', { requestSeconds: 0.5, replySeconds: 0.5 });
  await pass(2.5);
  a.machine.pause('freeze', 12);
  await pass(12.5);
  expect(a.elector.isLeader()).toBe(false);
  expect(a.stopReason()).toMatchObject({ code: 'Lost' });
});

test('kubernetes-csi/external-provisioner#690, metallb/metallb#140: namesakes never lead together', async () => {
  const { contender, pass, until } = aWorld();
  const a = contender('a', { identity: 'same' });
  const b = contender('b', { identity: 'same' });
  a.start();
  await until(() => a.elector.isLeader());
  b.start();
  await pass(120);
  expect([a.elector.isLeader(), b.terms()]).toEqual([true, 0]);
  a.machine.pause('freeze', 30);
  await until(() => b.elector.isLeader(), 20);
  expect(a.elector.isLeader()).toBe(false);
  await pass(30);
  expect(a.stopReason()).toMatchObject({ code: 'Lost' });
});

test('lukas-krecan/ShedLock#1241: five minutes between the wall clocks change nothing', async () => {
  async function history(skewSeconds: number) {
    const { contender, server, pass } = aWorld();
    const a = contender('a');
    const b = contender('b');
    b.machine.stepWallClock(skewSeconds);
    a.start();
    await pass(1);
    b.start();
    await pass(20);
    a.machine.stepWallClock(-2 * skewSeconds);
    a.machine.pause('freeze', 40);
    await pass(60);
    return server.writes.map(({ writer, atSeconds, record }) => ({ writer, atSeconds, holder: record.holderIdentity }));
  }
  expect(await history(300)).toEqual(await history(0));
  expect(await history(-300)).toEqual(await history(0));
});

test('suspend: a machine that wakes up knows by its boot clock that its leadership has ended', async () => {
  const { contender, pass, until } = aWorld();
  const a = contender('a');
  const b = contender('b');
  a.start();
  await until(() => a.elector.isLeader());
  b.start();
  await pass(3);
  a.machine.pause('suspend', 60);
  await pass(60);
  expect([a.elector.isLeader(), b.elector.isLeader()]).toEqual([false, true]);
  await until(() => !a.isWorking(), 5);
});

test('a deleted Lease ends leadership, and who saw it held waits as if it were still there', async () => {
  const { contender, server, network, pass, until } = aWorld();
  const a = contender('a', { standsAgain: false });
  const b = contender('b');
  a.start();
  await until(() => a.elector.isLeader());
  b.start();
  await pass(3);
  network('a', LOST);
  server.remove();
  await until(() => b.elector.isLeader());
  expect(a.elector.isLeader()).toBe(false);

  network('a', undefined);
  const c = contender('c', { standsAgain: false });
  b.stop();
  c.start();
  await until(() => c.elector.isLeader());
  server.remove();
  await until(() => !c.isWorking(), 3);
  await pass(0.1);
  expect(c.outcomes).toEqual([{ kind: 'lost', reason: 'LeaseDeleted' }]);
});
