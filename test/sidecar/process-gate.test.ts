import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { expectStopped, TIMEOUT, useHarness, viewOf } from './support/harness.ts';
import { eventually, IDENTITY } from './support/process.ts';

const harness = useHarness();

describe('the gate', TIMEOUT, () => {
  test('is closed before the grant, and open after the files are there', async () => {
    const sidecar = await harness.startWaiting();
    let answered = false;
    const started = sidecar.probe('/started').then((answer) => ((answered = true), answer));
    await new Promise((wake) => setTimeout(wake, 300));
    expect([answered, sidecar.file('env'), sidecar.file('token')]).toEqual([false, undefined, undefined]);
    expect(await viewOf(sidecar)).toEqual({ state: 'waiting' });

    harness.api.grant(IDENTITY, { token: '9007199254740993' });
    expect((await started).status).toBe(200);
    expect([sidecar.file('env'), sidecar.file('token')]).toEqual([
      "FENCING_TOKEN='9007199254740993'\n",
      '9007199254740993',
    ]);
    expect(await viewOf(sidecar)).toMatchObject({ state: 'held', token: '9007199254740993' });
    expect((await sidecar.probe('/metrics')).body).toContain('kilit_sidecar_held 1\n');
  });

  test('stays closed for the grant of another', async () => {
    const sidecar = await harness.startWaiting();
    harness.api.grant(`${IDENTITY}0`, { token: '5' });
    await eventually('it is seen', async () => (await viewOf(sidecar)).holder === `${IDENTITY}0`);
    expect([sidecar.file('env'), harness.puts().length]).toEqual([undefined, 0]);
  });

  test('stays closed until the confirmation is answered', async () => {
    const sidecar = await harness.startWaiting();
    harness.api.fault((seen) => seen.method === 'PUT');
    harness.api.grant(IDENTITY, { token: '5' });
    await eventually('it tries', () => harness.puts().length >= 1);
    await new Promise((wake) => setTimeout(wake, 200));
    expect([sidecar.file('env'), (await viewOf(sidecar)).state]).toEqual([undefined, 'waiting']);
    harness.api.fault(undefined);
    await eventually('it holds', async () => (await viewOf(sidecar)).state === 'held');
  });

  test.each([
    ['no token', {}],
    ["token ''", { 'kilit.dev/fencing-token': '' }],
    ['token 007', { 'kilit.dev/fencing-token': '007' }],
    ['token +5', { 'kilit.dev/fencing-token': '+5' }],
    ['a huge token', { 'kilit.dev/fencing-token': '9'.repeat(30) }],
  ])('stays closed for a grant with %s', async (_name, annotations) => {
    const sidecar = await harness.startWaiting();
    harness.api.grant(IDENTITY, { token: '', annotations });
    await eventually('it is reported', () => sidecar.log().includes('Grant could not be read'));
    expect([sidecar.file('env'), harness.puts().length]).toEqual([undefined, 0]);
    expect(sidecar.child.exitCode).toBeNull();
  });

  test('stays closed when the files cannot be written, and the grant is given back', async () => {
    const sidecar = await harness.startWaiting();
    mkdirSync(join(sidecar.dir, 'env.new'));
    mkdirSync(join(sidecar.dir, 'env.new/full'));
    const started = sidecar.probe('/started').catch(() => undefined);
    mkdirSync(join(sidecar.dir, 'token.new'));
    harness.api.grant(IDENTITY, { token: '5' });
    await expectStopped(sidecar, 'FilesFailed');
    expect((await started)?.status).not.toBe(200);
    expect(harness.holder()).toBe('');
  });
});
