/** `onRenewalFailure: ContinueFenced`: the real sidecar past its deadline. */
import { describe, expect, test } from 'vitest';
import { fail } from './support/fake-api.ts';
import { expectStopped, TIMEOUT, useHarness, viewOf } from './support/harness.ts';
import { eventually, IDENTITY, type SidecarProcess } from './support/process.ts';

const harness = useHarness();
const annotations = { 'kilit.dev/fencing-token': '123', 'kilit.dev/on-renewal-failure': 'ContinueFenced' };
const UNRENEWED = { state: 'unrenewed', token: '123', expiresInSeconds: 0 };

async function unrenewed(): Promise<SidecarProcess> {
  const sidecar = await harness.startWaiting();
  harness.api.grant(IDENTITY, { token: '123', seconds: 2, annotations });
  await eventually('it holds', async () => (await viewOf(sidecar)).state === 'held');
  harness.failWrites();
  await eventually('it is past its deadline', async () => (await viewOf(sidecar)).state === 'unrenewed');
  return sidecar;
}

describe('a holder by ContinueFenced that cannot renew', TIMEOUT, () => {
  test('keeps its files, says what it knows, and counts', async () => {
    const sidecar = await unrenewed();
    expect(await viewOf(sidecar)).toEqual(UNRENEWED);
    expect([sidecar.file('token'), sidecar.file('env')]).toEqual(['123', "FENCING_TOKEN='123'\n"]);
    expect((await sidecar.probe('/started')).status).toBe(200);
    const metrics = (await sidecar.probe('/metrics')).body;
    for (const line of ['kilit_sidecar_held 0', 'kilit_sidecar_unrenewed 1', 'kilit_sidecar_unrenewed_total 1']) {
      expect(metrics.split('\n')).toContain(line);
    }
    expect(metrics).toMatch(/last_renewal_age_seconds [1-9]/);
    await eventually('it tells', () => harness.events().length === 1);
    expect(harness.events()).toMatchObject([
      { reason: 'Unrenewed', type: 'Warning', regarding: { uid: '2b0c5a1e-uid' } },
    ]);
    expect(sidecar.child.exitCode).toBeNull();
  });

  test('holds again with the same token when a renewal succeeds', async () => {
    const sidecar = await unrenewed();
    const tries = harness.puts().length;
    await eventually('it goes on trying', () => harness.puts().length > tries + 2);
    harness.api.fault(undefined);
    await eventually('it holds again', async () => (await viewOf(sidecar)).state === 'held');
    expect(await viewOf(sidecar)).toMatchObject({ token: '123' });
    await eventually('it tells', () => harness.events().length === 2);
    expect(harness.events()[1]).toMatchObject({ reason: 'Renewed', type: 'Normal' });
    expect((await sidecar.probe('/metrics')).body).toContain('kilit_sidecar_unrenewed 0\n');
  });

  test.each([
    ['another holds', 'HolderChanged', () => harness.api.grant('other_1', { token: '124' })],
    ['nobody holds', 'HolderChanged', () => harness.api.grant('', { token: '123' })],
    ['it was granted anew', 'GrantChanged', () => harness.api.grant(IDENTITY, { token: '124' })],
    ['the Lease was deleted', 'LeaseDeleted', () => harness.api.set(undefined)],
  ])('is stopped when it sees that %s', async (_, reason, happen) => {
    const sidecar = await unrenewed();
    happen();
    await expectStopped(sidecar, reason);
  });

  test('is stopped when it learns it late, because nothing was answered meanwhile', async () => {
    const sidecar = await unrenewed();
    harness.api.endWatches();
    harness.api.fault((_seen, response) => (fail(response, 503, 'no leader'), true));
    harness.api.grant('other_1', { token: '124' });
    await new Promise((wake) => setTimeout(wake, 3000));
    expect(await viewOf(sidecar)).toEqual(UNRENEWED);
    harness.api.fault(undefined);
    await expectStopped(sidecar, 'HolderChanged');
  });

  test('is stopped by SIGTERM, and releases nothing', async () => {
    const sidecar = await unrenewed();
    sidecar.child.kill('SIGTERM');
    await expectStopped(sidecar, 'Terminated');
    expect(harness.holder()).toBe(IDENTITY);
  });
});
