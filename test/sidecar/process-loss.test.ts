import { request } from 'node:http';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { fail } from './support/fake-api.ts';
import { expectStopped, TIMEOUT, useHarness, viewOf } from './support/harness.ts';
import { eventually, IDENTITY } from './support/process.ts';

const harness = useHarness();

describe('a loss', TIMEOUT, () => {
  test('comes within one event when another holds (kubernetes/kubernetes#23731)', async () => {
    const sidecar = await harness.startHolding({ seconds: 10 });
    const at = performance.now();
    harness.api.grant('other_1', { token: '124' });
    await expectStopped(sidecar, 'HolderChanged');
    expect(performance.now() - at).toBeLessThan(5000);
    expect(harness.events()).toMatchObject([
      { reason: 'Lost', regarding: { uid: '2b0c5a1e-uid' }, note: expect.stringContaining('HolderChanged') },
    ]);
  });

  test('comes when the Lease is deleted', async () => {
    const sidecar = await harness.startHolding({ seconds: 10 });
    harness.api.set(undefined);
    await expectStopped(sidecar, 'LeaseDeleted');
  });

  test('comes when another grant to the same Pod is seen', async () => {
    const sidecar = await harness.startHolding({ seconds: 10 });
    harness.api.grant(IDENTITY, { token: '124', seconds: 10 });
    await expectStopped(sidecar, 'GrantChanged');
  });

  test('comes when the operator asks it to yield, and does not release: the next start does', async () => {
    const sidecar = await harness.startHolding({ seconds: 10 });
    const lease = harness.api.lease();
    if (lease === undefined) throw new Error('There is no Lease');
    const annotations = { ...lease.metadata.annotations, 'kilit.dev/yield': 'NewerRevision' };
    harness.api.set({ ...lease, metadata: { ...lease.metadata, annotations } });
    await expectStopped(sidecar, 'YieldAsked');
    expect(harness.api.lease()?.spec.holderIdentity).toBe(IDENTITY);
  });

  test('comes at the deadline when writes fail and reads work (fabric8io/kubernetes-client#2860)', async () => {
    const sidecar = await harness.startHolding();
    harness.failWrites();
    const at = performance.now();
    await expectStopped(sidecar, 'DeadlinePassed');
    expect(performance.now() - at).toBeGreaterThan(900);
    expect(performance.now() - at).toBeLessThan(5000);
    expect(harness.puts().length).toBeGreaterThan(3);
  });

  test('comes at the deadline when nothing is ever answered, and the event does not delay the exit', async () => {
    const sidecar = await harness.startHolding();
    harness.api.fault(() => true);
    const at = performance.now();
    await expectStopped(sidecar, 'DeadlinePassed');
    expect(performance.now() - at).toBeLessThan(5000);
  });

  test('does not come while one renewal of two fails', async () => {
    const sidecar = await harness.startHolding();
    let count = 0;
    harness.api.fault(
      (seen, response) => seen.method === 'PUT' && (count += 1) % 2 === 1 && (fail(response, 500, 'no'), true),
    );
    await new Promise((wake) => setTimeout(wake, 4000));
    expect(await viewOf(sidecar)).toMatchObject({ state: 'held', token: '123' });
    expect((await sidecar.probe('/metrics')).body).toMatch(/renewals_total\{result="failed"\} [1-9]/);
  });

  test('does not come by a conflict with a write that left the grant as it is', async () => {
    const sidecar = await harness.startHolding();
    for (let count = 0; count < 5; count += 1) {
      const lease = harness.api.lease();
      if (lease !== undefined)
        harness.api.set({
          ...lease,
          metadata: { ...lease.metadata, annotations: { ...lease.metadata.annotations, note: String(count) } },
        });
      await new Promise((wake) => setTimeout(wake, 300));
    }
    expect(await viewOf(sidecar)).toMatchObject({ state: 'held' });
  });

  test('is told to those who watch before the process ends', async () => {
    const sidecar = await harness.startHolding({ seconds: 10 });
    let text = '';
    const ended = new Promise((resolve) => {
      const sent = request({ socketPath: join(sidecar.dir, 'sock'), path: '/v1/watch' }, (response) => {
        response.on('data', (chunk) => (text += String(chunk)));
        response.on('close', resolve);
        response.on('error', () => undefined);
      });
      sent.on('error', () => undefined);
      sent.end();
    });
    await eventually('it is told', () => text.includes('event: held'));
    harness.api.grant('other_1', { token: '124' });
    await ended;
    expect(text).toMatch(/event: lost\ndata: \{"state":"lost","reason":"HolderChanged"\}/);
  });

  test('comes by an error that nobody foresaw', async () => {
    const flags = ['--import', 'data:text/javascript,setTimeout(()=>Promise.reject(new Error("boom")),2500)'];
    const sidecar = await harness.startHolding({ seconds: 10, nodeFlags: flags });
    await expectStopped(sidecar, 'Crashed');
    expect(sidecar.log()).toContain('boom');
  });
});
