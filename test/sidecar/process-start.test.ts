import { describe, expect, test } from 'vitest';
import { aLease, fail } from './support/fake-api.ts';
import { TIMEOUT, useHarness, viewOf } from './support/harness.ts';
import { eventually, IDENTITY } from './support/process.ts';

const harness = useHarness();

describe('the start', TIMEOUT, () => {
  test('without an epoch removes the files and ends with 1: programs of an earlier life may be alive', async () => {
    const sidecar = await harness.start({
      epoch: false,
      files: { env: "FENCING_TOKEN='5'\n", token: '5', losses: '{"count":3}\n' },
    });
    expect((await sidecar.exited).code).toBe(1);
    expect([sidecar.file('env'), sidecar.file('token')]).toEqual([undefined, undefined]);
    expect([sidecar.file('losses'), harness.api.requests.length]).toEqual(['{"count":3}\n', 0]);
  });

  test('with an epoch releases the confirmed grant of an earlier life at once', async () => {
    const sidecar = await harness.start({ files: {} });
    await eventually('watch', () => harness.api.watches() === 1);
    await sidecar[Symbol.asyncDispose]();
    harness.api.grant(IDENTITY, { token: '7' });
    const lease = harness.api.lease();
    if (lease !== undefined)
      harness.api.set({ ...lease, spec: { ...lease.spec, renewTime: '2026-01-01T00:00:00.000000Z' } });
    const next = await harness.start();
    await eventually('release', () => harness.holder() === '');
    expect([next.file('env'), next.file('epoch')]).toEqual([undefined, undefined]);
    expect(next.child.exitCode).toBeNull();
  });

  test('with an epoch adopts a grant that nobody confirmed', async () => {
    harness.api.grant(IDENTITY, { token: '7' });
    const sidecar = await harness.start();
    await eventually('it holds', () => sidecar.file('token') === '7');
  });

  test('waits while it is forbidden to read, says once what that means, and waits while there is no Lease', async () => {
    harness.api.set(undefined);
    harness.api.fault((_seen, response) => (fail(response, 403, 'forbidden'), true));
    const sidecar = await harness.start();
    await eventually('it tries again', () => harness.api.requests.length >= 3);
    const told = /lock billing does not exist in namespace shop, or the operator has not granted access yet; waiting/g;
    expect(sidecar.log().match(told)).toHaveLength(1);
    expect(sidecar.log()).not.toMatch(/forbidden|Warning/);
    harness.api.fault(undefined);
    await eventually('watch', () => harness.api.watches() === 1);
    harness.api.set(aLease());
    harness.api.grant(IDENTITY, { token: '8' });
    await eventually('it holds', () => sidecar.file('token') === '8');
  });

  test('replaces a socket that an earlier life left', async () => {
    const sidecar = await harness.startWaiting({ files: { sock: '' } });
    expect(await viewOf(sidecar)).toEqual({ state: 'waiting' });
  });

  test('ends when its port is taken', async () => {
    const first = await harness.startWaiting();
    const second = await harness.start({ env: { KILIT_PORT: String(first.port) } });
    expect((await second.exited).code).toBe(80);
    expect(second.log()).toContain('EADDRINUSE');
    expect(second.file('reason')).toMatch(/^Crashed: /);
  });

  test('ends with every fault of its settings in one line', async () => {
    const sidecar = await harness.start({ env: { KILIT_LOCK: 'NO', KILIT_PORT: 'x' } });
    expect((await sidecar.exited).code).toBe(1);
    expect(sidecar.log()).toMatch(
      /"msg":"2 settings are wrong: KILIT_LOCK must .* got 'NO'; KILIT_PORT must .* got 'x'"/,
    );
  });

  test('logs one line per change of state, with the token as text', async () => {
    const sidecar = await harness.startHolding({ seconds: 10 });
    const lines = sidecar
      .log()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(lines.map(({ msg }) => msg)).toEqual(['Began to wait', 'Saw grant', 'Confirmed grant', 'Took lock']);
    expect(lines.at(-1)).toMatchObject({ level: 30, time: expect.any(Number), lock: 'billing', token: '123' });
  });
});
