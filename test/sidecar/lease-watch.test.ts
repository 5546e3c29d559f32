import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Observation } from '../../src/core/holder-types.ts';
import { createApiClient } from '../../src/sidecar/api-client.ts';
import { createLeaseClient } from '../../src/sidecar/lease-client.ts';
import { followLease, readWatchLine, type Trouble, WATCH_TIMINGS } from '../../src/sidecar/lease-watch.ts';
import { setTimer } from '../../src/sidecar/timer.ts';
import { aLease, type FakeApi, fail, send, startFakeApi } from './support/fake-api.ts';
import { eventually } from './support/process.ts';

let api: FakeApi;
let dir = '';
let stop: () => Promise<void> = () => Promise.resolve();
const seen: Observation[] = [];
const troubles: (Trouble | undefined)[] = [];
let sign = '';

beforeEach(async () => {
  api = await startFakeApi();
  dir = mkdtempSync(join(tmpdir(), 'kilit-watch-'));
  writeFileSync(join(dir, 'ca.crt'), api.ca);
  writeFileSync(join(dir, 'token'), 't');
  seen.length = 0;
  troubles.length = 0;
  sign = '';
});
afterEach(async () => {
  await stop();
  await api[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

function follow(timings: Partial<typeof WATCH_TIMINGS> = {}): void {
  const client = createApiClient({ host: '127.0.0.1', port: api.port, dir });
  const cancel = new AbortController();
  const lease = createLeaseClient({ api: client, wallMicros: () => 0n }, { namespace: 'shop', lock: 'billing' });
  const followed = followLease(
    {
      api: client,
      lease,
      now: () => performance.now(),
      setTimer,
      random: () => 0.5,
      observe: (observation) => void seen.push(observation),
      onTrouble: (trouble) => void troubles.push(trouble),
      sign: () => sign,
      signal: cancel.signal,
    },
    { ...WATCH_TIMINGS, firstRetryMs: 20, longestRetryMs: 200, napMs: 20, ...timings },
  );
  stop = async () => {
    cancel.abort();
    client.close();
    await followed;
  };
}

const isWatch = (path: string) => path.includes('watch=1');
const lists = () => api.requests.filter(({ path }) => !isWatch(path)).length;
const watches = () => api.requests.filter(({ path }) => isWatch(path)).length;
const messages = () => troubles.flatMap((trouble) => trouble?.message ?? []);
const lastHolder = () => seen.at(-1)?.lease?.holder;

describe('following a Lease', () => {
  test('lists once, then brings each change', async () => {
    api.set(aLease());
    follow();
    await eventually('watch', () => api.watches() === 1);
    api.grant('a_1', { token: '1' });
    api.set(undefined);
    await eventually('deletion', () => seen.length === 3);
    expect(seen.map(({ lease }) => lease?.holder)).toEqual(['', 'a_1', undefined]);
    expect(seen[0]?.requestedAt).toBeDefined();
    expect(seen[1]?.requestedAt).toBeUndefined();
    expect(lists()).toBe(1);
  });

  test('shows that there is no Lease, and the one that comes', async () => {
    follow();
    await eventually('list', () => seen.length === 1);
    expect(seen[0]?.lease).toBeUndefined();
    expect(seen[0]?.revision).toBeTypeOf('bigint');
    await eventually('watch', () => api.watches() === 1);
    api.set(aLease());
    await eventually('lease', () => lastHolder() === '');
  });

  test('goes on without a list when the time of the watch is over', async () => {
    api.set(aLease());
    follow({ fullWatchMs: 0 });
    for (const holder of ['a_1', 'a_2', 'a_3']) {
      await eventually('watch', () => api.watches() === 1);
      api.grant(holder, { token: '1' });
      await eventually('news', () => lastHolder() === holder);
      api.endWatches();
    }
    expect(lists()).toBe(1);
    expect(messages()).toEqual([]);
  });

  test('lists again when the server ends the watch before its time: it may be a restarted one, on a restored etcd', async () => {
    api.set(aLease());
    follow();
    await eventually('watch', () => api.watches() === 1);
    api.endWatches();
    await eventually('second list', () => lists() === 2);
    expect(messages()).toEqual([]);
  });

  test('misses nothing between two watches', async () => {
    api.set(aLease());
    follow({ fullWatchMs: 0 });
    await eventually('watch', () => api.watches() === 1);
    api.endWatches();
    api.grant('a_1', { token: '1' });
    await eventually('news', () => lastHolder() === 'a_1');
    expect(lists()).toBe(1);
  });

  test('lists again when the revision is gone, by answer or by event', async () => {
    api.set(aLease());
    let refusals = 1;
    api.fault((request, response) => isWatch(request.path) && refusals-- > 0 && (fail(response, 410, 'too old'), true));
    follow();
    await eventually('watch', () => api.watches() === 1);
    expect(lists()).toBe(2);
    api.endWatches(JSON.stringify({ type: 'ERROR', object: { kind: 'Status', code: 410 } }));
    await eventually('third list', () => lists() === 3);
    expect(messages()).toEqual([]);
  });

  test('lists again after a malformed line, and says so', async () => {
    api.set(aLease());
    follow();
    await eventually('watch', () => api.watches() === 1);
    api.endWatches('{"type":"MODIFIED","object":');
    await eventually('second list', () => lists() === 2);
    expect(messages()).toContain('A line of the watch is no JSON');
  });

  test('lists again when the watch brings nothing for too long', async () => {
    api.set(aLease());
    follow({ idleTimeoutMs: 150 });
    await eventually('second list', () => lists() === 2);
    expect(messages()).toContain('The watch brought nothing for too long');
  });

  test('tries again while forbidden or without a server, slower each time', async () => {
    api.set(aLease());
    api.fault((_request, response) => (fail(response, 403, 'forbidden'), true));
    follow();
    await new Promise((wake) => setTimeout(wake, 1000));
    expect(troubles[0]).toEqual({ kind: 'forbidden', message: 'HTTP 403: forbidden' });
    expect(lists()).toBeGreaterThan(3);
    expect(lists()).toBeLessThan(15);
    api.fault(undefined);
    await eventually('lease', () => lastHolder() === '');
    expect(troubles).toContain(undefined);
  });

  test('asks seldom once it has long been forbidden, and at once when the Pod shows a grant', async () => {
    api.set(aLease());
    api.fault((_request, response) => (fail(response, 403, 'forbidden'), true));
    follow({ patientAfterMs: 100, patientRetryMs: 60_000 });
    await eventually('it is patient', () => lists() >= 3);
    await new Promise((wake) => setTimeout(wake, 500));
    const asked = lists();
    expect(asked).toBeLessThan(8);
    api.fault(undefined);
    await new Promise((wake) => setTimeout(wake, 500));
    expect([lists(), seen.length]).toEqual([asked, 0]);
    sign = '4711';
    await eventually('lease', () => lastHolder() === '');
  });

  test('goes on asking often where it is not forbidden but without a server', async () => {
    api.fault((_request, response) => (fail(response, 503, 'no leader'), true));
    follow({ patientAfterMs: 100, patientRetryMs: 60_000 });
    await eventually('it asks on', () => lists() > 8);
    expect(troubles[0]).toEqual({ kind: 'failed', message: 'HTTP 503: no leader' });
  });

  test('does not storm a server that ends each watch at once', async () => {
    api.set(aLease());
    api.fault((request, response) => isWatch(request.path) && (send(response, 200, ''), true));
    follow();
    await new Promise((wake) => setTimeout(wake, 1000));
    expect(watches()).toBeLessThan(15);
  });

  test('gives up a list that is never answered', async () => {
    api.set(aLease());
    let silent = 1;
    api.fault(() => silent-- > 0);
    follow({ listTimeoutMs: 100 });
    await eventually('lease', () => lastHolder() === '');
  });
});

describe('a line of a watch', () => {
  const object = aLease({ revision: '12' });

  test.each(['ADDED', 'MODIFIED'])('of type %s brings the Lease', (type) => {
    expect(readWatchLine(JSON.stringify({ type, object }))).toMatchObject({
      kind: 'event',
      revision: '12',
      observation: { lease: { holder: '' }, revision: 12n },
    });
  });

  test('of type DELETED brings its end', () => {
    expect(readWatchLine(JSON.stringify({ type: 'DELETED', object }))).toMatchObject({
      observation: { lease: undefined, revision: 12n },
    });
  });

  test('of type BOOKMARK brings a revision only', () => {
    expect(readWatchLine(JSON.stringify({ type: 'BOOKMARK', object }))).toEqual({
      kind: 'event',
      revision: '12',
      observation: undefined,
    });
  });

  test('of a Lease on its way out brings its end', () => {
    const ending = { ...object, metadata: { ...object.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } };
    expect(readWatchLine(JSON.stringify({ type: 'MODIFIED', object: ending }))).toMatchObject({
      observation: { lease: undefined },
    });
  });

  test.each([
    '',
    'null',
    '5',
    '[]',
    '{}',
    '{"type":"MODIFIED"}',
    '{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"x"}}}',
    '{"type":"RENAMED","object":{"metadata":{"resourceVersion":"1"}}}',
    '{"type":"ERROR"}',
    '{"type":"ERROR","object":{"code":500}}',
    '{"type":"MODIFIED","object":{"metadata":{"resourceVersion":"1"},"spec":{"holderIdentity":1}}}',
  ])('that is %s asks for a list, and says why', (line) => {
    expect(readWatchLine(line)).toMatchObject({ kind: 'list', message: expect.any(String) });
  });
});
