import { expect, test } from 'vitest';
import type { ElectionObserver } from '../../src/leader-election/index.ts';
import { LOST } from './support/fake-api-server.ts';
import { aWorld } from './support/world.ts';

test('fabric8io/kubernetes-client#6020, elastic/elastic-agent#4542: 1,000 rounds of loss and re-acquisition', async () => {
  const { contender, server, network, until } = aWorld();
  const contenders = [contender('a', { retryPeriodSeconds: 2 }), contender('b', { retryPeriodSeconds: 2 })];
  for (const each of contenders) each.start();
  for (let round = 1; round <= 1000; round += 1) {
    await until(() => contenders.some(({ elector }) => elector.isLeader()), 30);
    const leader = contenders.find(({ elector }) => elector.isLeader());
    const follower = contenders.find((each) => each !== leader);
    network(leader?.name ?? '', LOST);
    await until(() => follower?.elector.isLeader() === true, 30);
    network(leader?.name ?? '', undefined);
    expect(contenders.reduce((sum, each) => sum + each.terms(), 0)).toBe(round + 1);
  }
  expect(server.lease()?.record.leaseTransitions).toBe(1000);
}, 120_000);

test('opentofu/opentofu#2997: after kill -9 another leads one lease later', async () => {
  const { contender, pass, until } = aWorld();
  const a = contender('a');
  const b = contender('b');
  a.start();
  await until(() => a.elector.isLeader());
  b.start();
  await pass(3);
  a.machine.pause('freeze', 1e6);
  expect(await until(() => b.elector.isLeader())).toBeLessThan(15 + 2 * 2.4);
});

test('grafana/loki#24042, dragonflydb/dragonfly-operator#577: a voluntary hand-over takes one retry period', async () => {
  const { contender, pass, until } = aWorld();
  const a = contender('a', { retryPeriodSeconds: 1.5 });
  const b = contender('b', { retryPeriodSeconds: 1.5 });
  a.start();
  await until(() => a.elector.isLeader());
  b.start();
  await pass(7);
  a.stop();
  expect(await until(() => b.elector.isLeader())).toBeLessThan(2);
});

test('NVIDIA/gpu-operator#772, controller-runtime#1774, keda#2836: a slow API server ends no leadership', async () => {
  const { contender, network, pass, until } = aWorld();
  const a = contender('a');
  network('a', { requestSeconds: 0.85, replySeconds: 0.85 });
  a.start();
  await until(() => a.elector.isLeader());
  await pass(600);
  expect([a.elector.isLeader(), a.terms()]).toEqual([true, 1]);
});

test('an outage shorter than the deadline is reported as a slow renewal and loses nothing', async () => {
  const slow: number[] = [];
  const phases: string[] = [];
  let failures = 0;
  const observer: ElectionObserver = {
    slowRenewal: ({ sinceLastSeconds }) => slow.push(sinceLastSeconds),
    renewalFailed: () => (failures += 1),
    phaseChanged: ({ to, reason }) => phases.push(reason === undefined ? to : `${to} ${reason}`),
  };
  const { contender, network, pass, until } = aWorld();
  const a = contender('a', { observer, standsAgain: false });
  a.start();
  await until(() => a.elector.isLeader());
  network('a', LOST);
  await pass(6);
  network('a', undefined);
  await pass(6);
  expect([a.elector.isLeader(), a.terms(), slow.length, failures]).toEqual([true, 1, 1, 2]);
  expect(slow[0]).toBeGreaterThan(5);
  network('a', LOST);
  await pass(30);
  expect(phases).toEqual(['waiting', 'leading', 'stopping DeadlinePassed', 'idle']);
});

test('Kong/kubernetes-ingress-controller#3124: leader and waiter stay within one request per retry period', async () => {
  const { contender, server, pass, until } = aWorld();
  const a = contender('a', { random: () => 0 });
  a.start();
  await until(() => a.elector.isLeader());
  const before = server.requests();
  await pass(600);
  expect(server.requests() - before).toBeLessThanOrEqual(300);
  const b = contender('b', { random: () => 0 });
  b.start();
  const both = server.requests();
  await pass(600);
  expect(server.requests() - both).toBeLessThanOrEqual(601);
});

test('waiters do not knock in step: every wait is jittered by up to 20 %', async () => {
  const { contender, server, pass } = aWorld();
  const a = contender('a', { random: () => 0.999 });
  a.start();
  await pass(25);
  const gaps = server.writes
    .map(({ atSeconds }, index) => atSeconds - (server.writes[index - 1]?.atSeconds ?? 0))
    .slice(2);
  for (const gap of gaps) expect(gap).toBeCloseTo(2.4, 1);
});

test('a label set by somebody else neither ends leadership nor keeps an expired Lease alive', async () => {
  const { contender, server, pass, until, time } = aWorld();
  const a = contender('a');
  const b = contender('b');
  a.start();
  await until(() => a.elector.isLeader());
  b.start();
  const labelling = () => {
    server.label();
    time.after(0.7, labelling);
  };
  labelling();
  await pass(300);
  expect([a.elector.isLeader(), a.terms()]).toEqual([true, 1]);
  a.machine.pause('freeze', 1e6);
  expect(await until(() => b.elector.isLeader())).toBeLessThan(15 + 2 * 2.4);
});

test('kubernetes-client/javascript#828: times are written with six fraction digits', async () => {
  const { contender, server, pass } = aWorld();
  contender('a').start();
  await pass(30);
  expect(server.writes.length).toBeGreaterThan(10);
  for (const { record } of server.writes) {
    for (const time of [record.acquireTime, record.renewTime])
      expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  }
});
