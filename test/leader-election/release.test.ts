import { expect, test } from 'vitest';
import { PROMPT, REPLY_LOST } from './support/fake-api-server.ts';
import { aWorld } from './support/world.ts';

test('kubernetes/kubernetes#139991: releases only after the work has ended, and renews until then', async () => {
  const { contender, server, pass, until } = aWorld();
  const a = contender('a', { drainSeconds: () => 18 });
  const b = contender('b');
  a.start();
  await until(() => a.elector.isLeader());
  b.start();
  a.stop();
  await pass(17);
  expect(a.isWorking()).toBe(true);
  expect(a.elector.isLeader()).toBe(true);
  expect(b.terms()).toBe(0);
  await until(() => b.elector.isLeader());
  expect(a.isWorking()).toBe(false);
  expect(a.outcomes).toEqual([{ kind: 'stopped' }]);
  expect(server.writes.filter(({ record }) => record.holderIdentity === '')).toHaveLength(1);
});

test('redisson/redisson#7272, etcd-io/etcd#17470: renewal does not outlive the work', async () => {
  const { contender, server, pass, until } = aWorld();
  const a = contender('a', { standsAgain: false });
  a.start();
  await until(() => a.elector.isLeader());
  await pass(10);
  a.finishWork();
  await pass(1);
  expect(a.outcomes).toEqual([{ kind: 'ended' }]);
  expect(server.lease()?.record.holderIdentity).toBe('');
  const requests = server.requests();
  await pass(300);
  expect([server.requests(), a.terms(), a.elector.isLeader()]).toEqual([requests, 1, false]);
});

test('a stopped elector never leads again unless it is run again', async () => {
  const { contender, pass, until } = aWorld();
  const a = contender('a');
  a.start();
  await until(() => a.elector.isLeader());
  a.stop();
  await pass(300);
  expect([a.terms(), a.elector.isLeader()]).toEqual([1, false]);
  a.start();
  await until(() => a.elector.isLeader(), 1);
  expect(a.terms()).toBe(2);
});

test('stopping while the acquisition is on its way leaves no Lease that is held by nobody', async () => {
  const { contender, server, network, pass } = aWorld();
  const a = contender('a');
  network('a', (verb) => (verb === 'create' ? REPLY_LOST : PROMPT));
  a.start();
  await pass(0.1);
  a.stop();
  await pass(0.1);
  expect(a.outcomes).toEqual([{ kind: 'stopped' }]);
  expect(server.lease()?.record.holderIdentity).toBe('');
});

test('a renewal on its way when the work ends does not undo or prevent the release', async () => {
  const { contender, server, network, pass, until } = aWorld();
  const a = contender('a');
  a.start();
  await until(() => a.elector.isLeader());
  network('a', (verb) => (verb === 'update' ? { requestSeconds: 0.5, replySeconds: 0.5 } : PROMPT));
  await pass(2.3);
  a.stop();
  network('a', undefined);
  await pass(20);
  expect(server.lease()?.record.holderIdentity).toBe('');
});

test('a release that meets a conflict reads the Lease and is tried again', async () => {
  const { contender, server, network, pass, until } = aWorld();
  const a = contender('a');
  a.start();
  await until(() => a.elector.isLeader());
  server.label();
  a.stop();
  await pass(0.1);
  expect(server.lease()?.record.holderIdentity).toBe('');

  // Again, with a renewal that arrives between the read and the write of the release.
  a.start();
  await until(() => a.elector.isLeader());
  network('a', (verb) => (verb === 'update' ? { requestSeconds: 0.5, replySeconds: 0.5 } : PROMPT));
  await pass(2.3);
  a.stop();
  await pass(3);
  expect(a.outcomes).toEqual([{ kind: 'stopped' }, { kind: 'stopped' }]);
  expect(server.lease()?.record.holderIdentity).toBe('');
});

test('gives up on work that does not end, keeps the Lease from being released, and refuses to run meanwhile', async () => {
  const { contender, server, pass, until } = aWorld();
  const a = contender('a', { drainSeconds: () => 30, stopTimeoutSeconds: 5 });
  const b = contender('b');
  a.start();
  await until(() => a.elector.isLeader());
  b.start();
  a.stop();
  await pass(4.9);
  expect(a.elector.isLeader()).toBe(true);
  await pass(0.2);
  expect(a.elector.isLeader()).toBe(false);
  expect(a.outcomes).toEqual([expect.objectContaining({ code: 'WorkStillRunning' })]);
  a.start();
  await pass(0.1);
  expect(a.outcomes[1]).toMatchObject({ code: 'AlreadyRunning' });
  await until(() => b.elector.isLeader(), 20);
  expect(server.writes.some(({ record }) => record.holderIdentity === '')).toBe(false);
  await until(() => !a.isWorking());
  a.start();
  await pass(1);
  expect(a.outcomes).toHaveLength(2);
});

test('an error of the work passes through, after the release', async () => {
  const { contender, server, time, pass, until } = aWorld();
  const a = contender('a');
  const failing = a.elector.run(new AbortController().signal, async () => {
    await new Promise<void>((resolve) => time.after(1, resolve));
    throw new Error('disk full');
  });
  const caught = failing.catch((err: unknown) => err);
  await until(() => server.writes.some(({ record }) => record.holderIdentity === ''), 5);
  await pass(0.1);
  expect(a.elector.isLeader()).toBe(false);
  expect(await caught).toEqual(new Error('disk full'));
});

test('a lost reply to an acquisition neither grants nor blocks', async () => {
  const { contender, server, network, pass, until } = aWorld();
  const a = contender('a');
  network('a', (verb) => (verb === 'create' ? REPLY_LOST : PROMPT));
  a.start();
  await pass(1);
  expect([server.lease()?.record.holderIdentity, a.elector.isLeader()]).toEqual(['a', false]);
  expect(await until(() => a.elector.isLeader())).toBeLessThan(2);
  expect(server.lease()?.record.leaseTransitions).toBe(0);
});
