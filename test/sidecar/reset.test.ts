import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type SidecarOptions, type SidecarProcess, startSidecar } from './support/process.ts';

let running: SidecarProcess[] = [];
beforeEach(() => void (running = []));
afterEach(async () => {
  for (const reset of running) await reset[Symbol.asyncDispose]();
});

/** `kilit-reset` as the policy injects it: no API. */
async function start(options: Omit<SidecarOptions, 'api'> = {}): Promise<SidecarProcess> {
  const reset = await startSidecar({ api: { port: 1, ca: '' }, args: ['reset'], epoch: false, ...options });
  running.push(reset);
  return reset;
}

describe('kilit-reset', { timeout: 20_000 }, () => {
  test('leaves an epoch and ends with 0', async () => {
    const reset = await start();
    expect(await reset.exited).toEqual({ code: 0, signal: null });
    expect(reset.file('epoch')).toMatch(/^[0-9a-f-]{36}\n$/);
  });

  test('removes old files and keeps why the last grant was lost', async () => {
    const reset = await start({ files: { sock: '', reason: 'HolderChanged: x\n', losses: '{"count":1}\n' } });
    expect((await reset.exited).code).toBe(0);
    expect([reset.file('sock'), reset.file('reason'), reset.file('losses')]).toEqual([
      undefined,
      'HolderChanged: x\n',
      '{"count":1}\n',
    ]);
  });

  test('counts a sidecar that was killed while it held as a loss', async () => {
    const reset = await start({ files: { env: "FENCING_TOKEN='5'\n", token: '5', losses: '{"count":1}\n' } });
    expect((await reset.exited).code).toBe(0);
    expect([reset.file('env'), reset.file('token'), reset.file('losses')]).toEqual([
      undefined,
      undefined,
      '{"count":2}\n',
    ]);
    expect(reset.file('reason')).toMatch(/^Killed: /);
  });

  test('waits after the second loss, and leaves the epoch only then', async () => {
    const at = performance.now();
    const reset = await start({ files: { losses: '{"count":2}\n' } });
    expect((await reset.exited).code).toBe(0);
    expect(performance.now() - at).toBeGreaterThan(1000);
    expect(reset.log()).toContain('"durationSeconds":1');
  });

  test('does not wait after the first loss', async () => {
    const reset = await start({ files: { losses: '{"count":1}\n' } });
    expect((await reset.exited).code).toBe(0);
    expect(reset.log()).toBe('');
  });

  test('ends at once with 1 and without an epoch when it is stopped while it waits', async () => {
    const reset = await start({ files: { losses: '{"count":9}\n', epoch: 'old\n' } });
    while (!reset.log().includes('Delayed start')) await new Promise((wake) => setTimeout(wake, 20));
    reset.child.kill('SIGTERM');
    expect(await reset.exited).toEqual({ code: 1, signal: null });
    expect(reset.file('epoch')).toBeUndefined();
  });

  test('ends with 1 and every fault when its settings are wrong, so that the kubelet backs off', async () => {
    const reset = await start({ env: { KILIT_MODE: 'both', KILIT_POD_UID: '' } });
    expect((await reset.exited).code).toBe(1);
    expect(reset.log()).toContain('2 settings are wrong');
    expect(reset.file('epoch')).toBeUndefined();
  });

  test('ends with 1 when the folder cannot be written', async () => {
    const reset = await start({ env: { KILIT_DIR: '/proc/1/nowhere' } });
    expect((await reset.exited).code).toBe(1);
    expect(reset.log()).toContain('Reset failed');
  });
});
