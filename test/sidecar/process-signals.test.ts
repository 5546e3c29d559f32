import { describe, expect, test } from 'vitest';
import { expectStopped, TIMEOUT, useHarness, viewOf } from './support/harness.ts';
import { IDENTITY } from './support/process.ts';

const harness = useHarness();

describe('SIGTERM', TIMEOUT, () => {
  test('removes the files, ends with 1 and does not release (kubernetes/kubernetes#139991)', async () => {
    const sidecar = await harness.startHolding({ seconds: 10 });
    sidecar.child.kill('SIGTERM');
    await expectStopped(sidecar, 'Terminated');
    expect([
      harness.holder(),
      harness.puts().filter(({ spec }) => spec.holderIdentity === '').length,
      harness.events().length,
    ]).toEqual([IDENTITY, 0, 0]);
  });

  test('ends a waiter with 80, which says that no program had a token, and counts no loss', async () => {
    const sidecar = await harness.startWaiting();
    sidecar.child.kill('SIGTERM');
    expect(await sidecar.exited).toEqual({ code: 80, signal: null });
    expect(sidecar.file('losses')).toBeUndefined();
  });
});

describe('SIGSTOP', TIMEOUT, () => {
  test('past the deadline: after SIGCONT it is lost before anything is answered as held', async () => {
    const sidecar = await harness.startHolding({ seconds: 2 });
    sidecar.child.kill('SIGSTOP');
    const asked = sidecar.ask('GET', '/v1/lock').catch(() => undefined);
    const scraped = sidecar.probe('/metrics').catch(() => undefined);
    const started = sidecar.probe('/started').catch(() => undefined);
    await new Promise((wake) => setTimeout(wake, 2500));
    sidecar.child.kill('SIGCONT');
    await expectStopped(sidecar, 'DeadlinePassed');
    expect((await asked)?.body ?? '').not.toContain('"held"');
    expect((await scraped)?.body ?? '').not.toContain('kilit_sidecar_held 1');
    expect((await started)?.status).not.toBe(200);
  });

  test('well before the deadline: it goes on holding', async () => {
    const sidecar = await harness.startHolding({ seconds: 10 });
    sidecar.child.kill('SIGSTOP');
    await new Promise((wake) => setTimeout(wake, 1000));
    sidecar.child.kill('SIGCONT');
    expect(await viewOf(sidecar)).toMatchObject({ state: 'held' });
  });
});
