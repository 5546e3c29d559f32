import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ApiClient, createApiClient } from '../../src/sidecar/api-client.ts';
import { makeCertificate } from './support/certificate.ts';
import { type FakeApi, send, startFakeApi } from './support/fake-api.ts';

let api: FakeApi;
let client: ApiClient;
let dir = '';

beforeEach(async () => {
  api = await startFakeApi();
  dir = mkdtempSync(join(tmpdir(), 'kilit-client-'));
  writeFileSync(join(dir, 'ca.crt'), api.ca);
  writeFileSync(join(dir, 'token'), 'first\n');
  client = createApiClient({ host: '127.0.0.1', port: api.port, dir });
});
afterEach(async () => {
  client.close();
  await api[Symbol.asyncDispose]();
  rmSync(dir, { recursive: true, force: true });
});

const get = (timeoutMs = 2000) => client.send({ method: 'GET', path: '/x', timeoutMs });

describe('a request', () => {
  test('is answered with status and body', async () => {
    api.fault((_request, response) => (send(response, 418, { a: 1 }), true));
    expect(await get()).toEqual({ kind: 'answer', status: 418, body: '{"a":1}' });
  });

  test('carries the token as the file has it now: the kubelet replaces it', async () => {
    await get();
    writeFileSync(join(dir, 'token'), 'second');
    await get();
    expect(api.requests.map(({ authorization }) => authorization)).toEqual(['Bearer first', 'Bearer second']);
  });

  test('sends its body', async () => {
    await client.send({ method: 'POST', path: '/x', body: '{"ä":1}', timeoutMs: 2000 });
    expect(api.requests[0]?.body).toBe('{"ä":1}');
  });

  test('uses one connection again', async () => {
    const ports = new Set<number | undefined>();
    api.fault((_request, response) => (ports.add(response.socket?.remotePort), false));
    for (let count = 0; count < 5; count += 1) await get();
    expect(ports.size).toBe(1);
  });

  test('times out when it is never answered', async () => {
    api.fault(() => true);
    const startedAt = performance.now();
    expect(await get(150)).toEqual({ kind: 'timedOut' });
    expect(performance.now() - startedAt).toBeLessThan(1500);
  });

  test('times out when the answer stops half way', async () => {
    api.fault((_request, response) => (response.writeHead(200), response.write('{'), true));
    expect(await get(150)).toEqual({ kind: 'timedOut' });
  });

  test('times out when the server takes connections and says nothing', async () => {
    const mute = createServer(() => undefined).listen(0, '127.0.0.1');
    await new Promise((ready) => mute.once('listening', ready));
    const muted = createApiClient({ host: '127.0.0.1', port: (mute.address() as AddressInfo).port, dir });
    expect(await muted.send({ method: 'GET', path: '/', timeoutMs: 150 })).toEqual({ kind: 'timedOut' });
    muted.close();
    mute.close();
  });

  test('goes to a new connection after one that failed', async () => {
    const ports: (number | undefined)[] = [];
    api.fault((_request, response) => (ports.push(response.socket?.remotePort), ports.length === 2));
    await get();
    expect(await get(100)).toEqual({ kind: 'timedOut' });
    expect(await get()).toMatchObject({ kind: 'answer' });
    expect(ports[0]).toBe(ports[1]);
    expect(ports[2]).not.toBe(ports[1]);
  });

  test('fails when nobody listens', async () => {
    const nobody = createApiClient({ host: '127.0.0.1', port: 1, dir });
    expect(await nobody.send({ method: 'GET', path: '/', timeoutMs: 2000 })).toMatchObject({
      kind: 'failed',
      message: expect.stringContaining('ECONNREFUSED'),
    });
  });

  test('fails when the connection breaks', async () => {
    api.fault((_request, response) => (response.socket?.destroy(), true));
    expect(await get()).toMatchObject({ kind: 'failed' });
  });

  test('fails when the answer is too long', async () => {
    api.fault((_request, response) => (send(response, 200, 'x'.repeat(300_000)), true));
    expect(await get()).toMatchObject({ kind: 'failed', message: expect.stringContaining('longer than') });
  });

  test.each(['ca.crt', 'token'])('fails while %s is missing, and works once it is there', async (name) => {
    rmSync(join(dir, name));
    expect(await get()).toMatchObject({ kind: 'failed', message: expect.stringContaining('ENOENT') });
    writeFileSync(join(dir, name), name === 'token' ? 'late' : api.ca);
    expect(await get()).toMatchObject({ kind: 'answer' });
  });
});

describe('the CA', () => {
  test('refuses a server that it did not sign', async () => {
    writeFileSync(join(dir, 'ca.crt'), makeCertificate().cert);
    expect(await get()).toMatchObject({ kind: 'failed', message: expect.stringContaining('certificate') });
    expect(api.requests).toEqual([]);
  });

  test('is read again after a failure: a rotated CA heals by itself', async () => {
    writeFileSync(join(dir, 'ca.crt'), makeCertificate().cert);
    await get();
    writeFileSync(join(dir, 'ca.crt'), api.ca);
    expect(await get()).toMatchObject({ kind: 'answer' });
  });

  test('is not accepted when it is no certificate', async () => {
    writeFileSync(join(dir, 'ca.crt'), 'not a certificate');
    expect(await get()).toMatchObject({ kind: 'failed' });
  });
});

describe('a stream', () => {
  const follow = (idleTimeoutMs = 2000, onLine: (line: string) => boolean = () => true) =>
    client.stream({ path: '/stream', idleTimeoutMs, onLine });

  test('brings whole lines, however they were cut', async () => {
    api.fault((_request, response) => {
      response.writeHead(200);
      response.write('{"a":"ä');
      setTimeout(() => response.write('"}\n\n{"b"'), 20);
      setTimeout(() => response.end(':2}\n{"half"'), 40);
      return true;
    });
    const lines: string[] = [];
    expect(await follow(2000, (line) => lines.push(line) > 0)).toEqual({ kind: 'ended' });
    expect(lines).toEqual(['{"a":"ä"}', '{"b":2}']);
  });

  test('ends when the reader wants no more', async () => {
    api.fault((_request, response) => (response.writeHead(200), response.write('1\n2\n3\n'), true));
    const lines: string[] = [];
    expect(await follow(2000, (line) => (lines.push(line), false))).toEqual({ kind: 'ended' });
    expect(lines).toEqual(['1']);
  });

  test('stalls when it brings nothing for too long', async () => {
    api.fault((_request, response) => (response.writeHead(200), response.write('1\n'), true));
    expect(await follow(150)).toEqual({ kind: 'stalled' });
  });

  test('does not stall while it brings something', async () => {
    api.fault((_request, response) => {
      response.writeHead(200);
      let count = 0;
      const timer = setInterval(
        () => ((count += 1) > 6 ? (clearInterval(timer), response.end()) : response.write('1\n')),
        60,
      );
      return true;
    });
    expect(await follow(200)).toEqual({ kind: 'ended' });
  });

  test('is refused with status and body', async () => {
    api.fault((_request, response) => (send(response, 410, { message: 'too old' }), true));
    expect(await follow()).toEqual({ kind: 'refused', status: 410, body: '{"message":"too old"}' });
  });

  test('fails at a line that never ends', async () => {
    api.fault((_request, response) => (response.writeHead(200), response.write('x'.repeat(300_000)), true));
    expect(await follow()).toMatchObject({ kind: 'failed', message: expect.stringContaining('A line is longer') });
  });

  test('ends or fails when the connection breaks', async () => {
    api.fault((_request, response) => {
      response.writeHead(200);
      response.write('1\n');
      setTimeout(() => response.socket?.destroy(), 30);
      return true;
    });
    expect(['ended', 'failed']).toContain((await follow()).kind);
  });
});
