import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aLease, type FakeApi, fail, startFakeApi } from './support/fake-api.ts';
import { eventually, IDENTITY, type SidecarProcess, startSidecar } from './support/process.ts';

let api: FakeApi;
let sidecar: SidecarProcess;

beforeEach(async () => {
  api = await startFakeApi();
  api.set(aLease());
  sidecar = await startSidecar({ api, env: { KILIT_MODE: 'standby' } });
  await eventually('it watches', () => api.watches() === 1);
});
afterEach(async () => {
  await sidecar[Symbol.asyncDispose]();
  await api[Symbol.asyncDispose]();
});

const state = async () => (JSON.parse((await sidecar.ask('GET', '/v1/lock')).body) as { state: string }).state;

async function hold(token: string, seconds: number): Promise<void> {
  api.grant(IDENTITY, { token, seconds });
  await eventually('it holds', async () => (await state()) === 'held');
}

describe('a sidecar in standby mode', { timeout: 20_000 }, () => {
  test('answers the probe at once, and writes the token file at the grant only', async () => {
    expect((await sidecar.probe('/started')).status).toBe(200);
    expect(sidecar.file('token')).toBeUndefined();
    await hold('5', 5);
    expect([sidecar.file('token'), sidecar.file('env')]).toEqual(['5', undefined]);
  });

  test('releases when asked, and takes the next grant', async () => {
    await hold('5', 5);
    expect(await sidecar.ask('POST', '/v1/release')).toEqual({ status: 200, body: '{"state":"waiting"}\n' });
    expect(sidecar.file('token')).toBeUndefined();
    await eventually('it is free', () => api.lease()?.spec.holderIdentity === '');
    await hold('6', 5);
    expect(sidecar.file('token')).toBe('6');
  });

  test('does not release what it does not hold', async () => {
    expect(await sidecar.ask('POST', '/v1/release')).toMatchObject({
      status: 409,
      body: expect.stringContaining('NotHeld'),
    });
    expect((await sidecar.ask('POST', '/v1/stood-down')).status).toBe(200);
  });

  test('tells the program when renewals fail, and waits again once it has stood down', async () => {
    await hold('5', 3);
    api.fault((seen, response) => seen.method === 'PUT' && (fail(response, 503, 'no'), true));
    await eventually('it is told', async () => (await state()) === 'losing');
    expect(sidecar.file('token')).toBeUndefined();
    expect(await sidecar.ask('POST', '/v1/stood-down')).toMatchObject({ status: 200 });
    await new Promise((wake) => setTimeout(wake, 1500));
    expect([sidecar.child.exitCode, await state()]).toEqual([null, 'waiting']);
    api.fault(undefined);
    await eventually('it gives back', () => api.lease()?.spec.holderIdentity === '');
    await hold('6', 5);
  });

  test('ends with 1 when the program does not stand down', async () => {
    await hold('5', 2);
    api.fault((seen, response) => seen.method === 'PUT' && (fail(response, 503, 'no'), true));
    expect((await sidecar.exited).code).toBe(1);
    expect(sidecar.file('reason')).toMatch(/^DeadlinePassed: /);
  });

  test('tells the program when it is asked to yield, and releases once it has stood down', async () => {
    await hold('5', 10);
    const lease = api.lease();
    if (lease === undefined) throw new Error('There is no Lease');
    const annotations = { ...lease.metadata.annotations, 'kilit.dev/yield': 'NodeDrain' };
    api.set({ ...lease, metadata: { ...lease.metadata, annotations } });
    await eventually('it is told', async () => (await state()) === 'losing');
    expect((await sidecar.ask('GET', '/v1/lock')).body).toContain('"reason":"YieldAsked"');
    await sidecar.ask('POST', '/v1/stood-down');
    await eventually('it gives back', () => api.lease()?.spec.holderIdentity === '');
    await hold('6', 5);
    expect(sidecar.file('token')).toBe('6');
  });

  test('tells the program when another holds, and stays when it stands down', async () => {
    await hold('5', 5);
    api.grant('other_1', { token: '6' });
    await eventually('it is told', async () => (await state()) === 'losing');
    await sidecar.ask('POST', '/v1/stood-down');
    expect(await state()).toBe('waiting');
    expect(api.lease()?.spec.holderIdentity).toBe('other_1');
  });
});
