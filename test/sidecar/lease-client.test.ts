import { describe, expect, test } from 'vitest';
import { type ObservedLease, readLease } from '../../src/core/holder-lease.ts';
import type { ApiClient, ApiReply, ApiRequest } from '../../src/sidecar/api-client.ts';
import { createLeaseClient, observationOf } from '../../src/sidecar/lease-client.ts';
import { aLease } from './support/fake-api.ts';

const TIME = '2026-01-01T00:00:00.000000Z';
const NOW = 1_767_225_600_000_000n; // the same instant

function clientOf(reply: ApiReply, wallMicros = NOW) {
  const sent: ApiRequest[] = [];
  const api: ApiClient = {
    send: (request) => (sent.push(request), Promise.resolve(reply)),
    stream: () => Promise.resolve({ kind: 'ended' }),
    close: () => undefined,
  };
  return {
    client: createLeaseClient({ api, wallMicros: () => wallMicros }, { namespace: 'shop', lock: 'billing' }),
    sent,
  };
}

const answer = (status: number, body: unknown): ApiReply => ({
  kind: 'answer',
  status,
  body: typeof body === 'string' ? body : JSON.stringify(body),
});

function held(spec: Record<string, unknown> = {}): ObservedLease {
  const object = aLease({
    annotations: { 'kilit.dev/fencing-token': '5' },
    spec: { holderIdentity: 'a_b', acquireTime: TIME, renewTime: TIME, ...spec },
  });
  const reading = readLease({ ...object, somethingNew: { kept: true } });
  if (reading.kind !== 'lease') throw new Error('no lease');
  return reading.lease;
}

const bodyOf = (sent: readonly ApiRequest[]) =>
  JSON.parse(sent[0]?.body ?? 'null') as { spec: Record<string, unknown> };

describe('a renewal', () => {
  test('sends everything back as it was, but for the renewTime', async () => {
    const { client, sent } = clientOf(answer(200, aLease()), NOW + 5n);
    const lease = held();
    await client.write({ purpose: 'renew', lease, timeoutMs: 100 });
    expect(sent[0]).toMatchObject({
      method: 'PUT',
      path: '/apis/coordination.k8s.io/v1/namespaces/shop/leases/kilit.billing?fieldManager=kilit-sidecar',
      timeoutMs: 100,
    });
    expect(bodyOf(sent)).toEqual({
      ...lease.raw,
      spec: { ...lease.raw.spec, renewTime: '2026-01-01T00:00:00.000005Z' },
    });
    expect(bodyOf(sent)).toHaveProperty('somethingNew.kept', true);
    expect(bodyOf(sent)).toHaveProperty('metadata.resourceVersion', '1');
  });

  test('writes a renewTime that differs from both times, though the clock stands still', async () => {
    const { client, sent } = clientOf(answer(200, aLease()));
    await client.write({
      purpose: 'confirm',
      lease: held({ renewTime: '2026-01-01T00:00:00.000001Z' }),
      timeoutMs: 100,
    });
    expect(bodyOf(sent).spec.renewTime).toBe('2026-01-01T00:00:00.000002Z');
  });
});

test('a release takes the holder away, and changes nothing else', async () => {
  const { client, sent } = clientOf(answer(200, aLease()));
  const lease = held();
  await client.write({ purpose: 'release', lease, timeoutMs: 100 });
  expect(bodyOf(sent)).toEqual({ ...lease.raw, spec: { ...lease.raw.spec, holderIdentity: '' } });
});

describe('the reply to a write', () => {
  test.each<[string, ApiReply, string]>([
    ['the Lease', answer(200, aLease({ revision: '9' })), 'ok'],
    ['409', answer(409, { message: 'modified' }), 'conflict'],
    ['401', answer(401, { message: 'Unauthorized' }), 'refused'],
    ['403', answer(403, { message: 'forbidden' }), 'refused'],
    ['404', answer(404, { message: 'not found' }), 'refused'],
    ['422', answer(422, { message: 'policy' }), 'refused'],
    ['a Lease on its way out', answer(200, { metadata: { resourceVersion: '9', deletionTimestamp: TIME } }), 'refused'],
    ['408', answer(408, ''), 'failed'],
    ['429', answer(429, { message: 'too many requests' }), 'failed'],
    ['500', answer(500, 'etcdserver: request timed out'), 'failed'],
    ['503 of a load balancer', answer(503, '<html>'), 'failed'],
    ['a redirect', answer(302, ''), 'failed'],
    ['200 without JSON', answer(200, '{'), 'failed'],
    ['silence', { kind: 'timedOut' }, 'timedOut'],
    ['a broken connection', { kind: 'failed', message: 'ECONNRESET' }, 'failed'],
  ])('%s counts as it should', async (_name, reply, kind) => {
    const { result, message } = await clientOf(reply).client.write({ purpose: 'renew', lease: held(), timeoutMs: 100 });
    expect(result.kind).toBe(kind);
    expect(message === undefined).toBe(kind === 'ok');
  });

  test('is explained in the words of the API server', async () => {
    const { client } = clientOf(answer(403, { kind: 'Status', message: 'leases "kilit.billing" is forbidden' }));
    expect((await client.write({ purpose: 'renew', lease: held(), timeoutMs: 1 })).message).toBe(
      'HTTP 403: leases "kilit.billing" is forbidden',
    );
  });
});

const listOf = (...items: readonly unknown[]) => answer(200, { metadata: { resourceVersion: '77' }, items });

describe('a read', () => {
  test.each<[string, ApiReply, string]>([
    ['a Lease', listOf(aLease()), 'lease'],
    ['none', listOf(), 'missing'],
    ['a Lease on its way out', listOf({ metadata: { resourceVersion: '9', deletionTimestamp: TIME } }), 'missing'],
    ['404', answer(404, {}), 'failed'],
    ['403', answer(403, {}), 'forbidden'],
    ['null', answer(200, 'null'), 'failed'],
    ['silence', { kind: 'timedOut' }, 'failed'],
  ])('that brings %s is told apart', async (_name, reply, kind) => {
    expect(await clientOf(reply).client.list(100)).toMatchObject({ kind });
  });

  test('that finds no Lease tells the revision of the list, so that a Lease made later is newer', () => {
    expect(observationOf({ kind: 'missing', listRevision: 77n }, 5)).toEqual({
      lease: undefined,
      revision: 77n,
      requestedAt: 5,
    });
  });
});

describe('a list', () => {
  test('asks for the one Lease, as RBAC demands', async () => {
    const { client, sent } = clientOf(answer(200, { metadata: { resourceVersion: '77' }, items: [aLease()] }));
    expect(await client.list(100)).toMatchObject({ kind: 'lease', listRevision: 77n });
    expect(sent[0]?.path).toBe(
      '/apis/coordination.k8s.io/v1/namespaces/shop/leases?fieldSelector=metadata.name%3Dkilit.billing',
    );
  });

  test.each<[string, ApiReply, string]>([
    ['without items', answer(200, { metadata: { resourceVersion: '77' }, items: [] }), 'missing'],
    ['without a revision', answer(200, { items: [] }), 'failed'],
    ['that is null', answer(200, 'null'), 'failed'],
    ['that is forbidden', answer(403, {}), 'forbidden'],
    ['with 404, as before the API is there', answer(404, {}), 'failed'],
    ['with garbage inside', answer(200, { metadata: { resourceVersion: '77' }, items: [5] }), 'failed'],
  ])('%s is told apart', async (_name, reply, kind) => {
    expect(await clientOf(reply).client.list(100)).toMatchObject({ kind });
  });
});
