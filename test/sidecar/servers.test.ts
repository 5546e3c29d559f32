import { mkdtempSync, rmSync, statSync } from 'node:fs';
import type { Server } from 'node:http';
import { type ClientRequest, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LockView, Refusal } from '../../src/core/holder-view.ts';
import { createGate } from '../../src/sidecar/gate.ts';
import { createProbeServer, createSocketServer, listen } from '../../src/sidecar/servers.ts';
import { createWatchers } from '../../src/sidecar/watchers.ts';
import { eventually, fetchText } from './support/process.ts';

let dir = '';
let servers: Server[] = [];
let open: (ClientRequest | Socket)[] = [];
let view: LockView = { state: 'waiting' };
let refusal: Refusal | undefined;
let calls: string[] = [];
let gateOpen = false;

const watchers = () => createWatchers(() => view);

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'kilit-http-'));
  [servers, open, calls] = [[], [], []];
  view = { state: 'waiting' };
  refusal = undefined;
  gateOpen = false;
});
afterEach(async () => {
  for (const one of open) one.destroy();
  for (const server of servers) {
    server.closeAllConnections();
    server.close();
  }
  rmSync(dir, { recursive: true, force: true });
});

const socketPath = () => join(dir, 'sock');

async function start(server: Server): Promise<void> {
  servers.push(server);
  const failed: Error[] = [];
  listen(server, { path: socketPath() }, (error) => failed.push(error));
  await new Promise((ready) => server.once('listening', ready));
  expect(failed).toEqual([]);
}

const startSocket = (following = watchers()) =>
  start(
    createSocketServer({
      view: () => view,
      watchers: following,
      release: () => (calls.push('release'), refusal),
      standDown: () => (calls.push('stood-down'), refusal),
    }),
  );

async function startProbe() {
  const gate = createGate(() => gateOpen);
  await start(createProbeServer({ gate, metrics: () => 'kilit_sidecar_held 0\n' }));
  return gate;
}

const ask = (method: string, path: string, body?: string, headers: Record<string, string> = {}) =>
  fetchText({ socketPath: socketPath(), method, path, headers, timeoutMs: 3000 }, body);

/** Sends bytes as they are, and brings what comes back until the end. */
function raw(text: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(socketPath(), () => socket.write(text));
    open.push(socket);
    socket.on('data', (chunk) => (answer += String(chunk)));
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(answer));
  });
}

/** Opens a stream of events and collects its text. */
function stream(path = '/v1/watch') {
  const got = { status: 0, text: '', closed: false };
  const sent = request({ socketPath: socketPath(), path, agent: false }, (response) => {
    got.status = response.statusCode ?? 0;
    response.on('data', (chunk) => (got.text += String(chunk)));
    response.on('close', () => (got.closed = true));
    response.on('error', () => undefined);
  });
  sent.on('error', () => (got.closed = true));
  sent.end();
  open.push(sent);
  return got;
}

describe('the socket', () => {
  test('lets programs of other users connect', async () => {
    await startSocket();
    await eventually('mode', () => (statSync(socketPath()).mode & 0o777) === 0o666);
  });

  test('answers what the lock is', async () => {
    await startSocket();
    view = { state: 'held', token: '9007199254740993', expiresInSeconds: 3.5 };
    expect(await ask('GET', '/v1/lock')).toEqual({ status: 200, body: `${JSON.stringify(view)}\n` });
    expect(await ask('GET', '/v1/lock?pretty')).toMatchObject({ status: 200 });
  });

  test('releases and stands down, and answers what the lock is then', async () => {
    await startSocket();
    expect(await ask('POST', '/v1/release')).toEqual({ status: 200, body: '{"state":"waiting"}\n' });
    expect(await ask('POST', '/v1/stood-down', '{}')).toMatchObject({ status: 200 });
    expect(calls).toEqual(['release', 'stood-down']);
  });

  test('says why it does not', async () => {
    await startSocket();
    refusal = { code: 'GateMode', message: 'no' };
    expect(await ask('POST', '/v1/release')).toEqual({ status: 409, body: '{"code":"GateMode","message":"no"}\n' });
  });
});

describe('a bad request', () => {
  test.each([
    ['GET', '/', 404, 'NotFound'],
    ['GET', '/v2/lock', 404, 'NotFound'],
    ['GET', '/toString', 404, 'NotFound'],
    ['GET', '/__proto__', 404, 'NotFound'],
    ['DELETE', '/v1/lock', 405, 'MethodNotAllowed'],
    ['POST', '/v1/lock', 405, 'MethodNotAllowed'],
    ['GET', '/v1/release', 405, 'MethodNotAllowed'],
  ])('%s %s is answered with %i %s, as JSON', async (method, path, status, code) => {
    await startSocket();
    const answer = await ask(method, path);
    expect(answer.status).toBe(status);
    expect(JSON.parse(answer.body)).toEqual({ code, message: expect.any(String) });
    expect(calls).toEqual([]);
  });

  test('with a body that is too long is refused, and nothing is done', async () => {
    await startSocket();
    const answer = await ask('POST', '/v1/release', 'x'.repeat(1025));
    expect([answer.status, JSON.parse(answer.body).code]).toEqual([413, 'BodyTooLarge']);
    expect(calls).toEqual([]);
  });

  test('with a body of 1 KiB is not refused', async () => {
    await startSocket();
    expect((await ask('POST', '/v1/release', 'x'.repeat(1024))).status).toBe(200);
  });

  test('with an endless body in chunks is refused, and nothing is done', async () => {
    await startSocket();
    const chunk = `400\r\n${'x'.repeat(1024)}\r\n`;
    const answer = await raw(
      `POST /v1/release HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n${chunk}${chunk}`,
    );
    expect(answer).toContain('413');
    expect(calls).toEqual([]);
  });

  test('with long headers is refused', async () => {
    await startSocket();
    const answer = await raw(`GET /v1/lock HTTP/1.1\r\nhost: a\r\nx: ${'x'.repeat(9000)}\r\n\r\n`);
    expect(answer).toContain('431');
    expect(answer).toContain('"code":"HeadersTooLarge"');
  });

  test('that is no HTTP is refused', async () => {
    await startSocket();
    expect(await raw('\u0016\u0003\u0001 hello\r\n\r\n')).toContain('"code":"BadRequest"');
  });

  test('does not end the server', async () => {
    await startSocket();
    await raw('\r\n\r\nnonsense');
    expect((await ask('GET', '/v1/lock')).status).toBe(200);
  });
});

describe('a program that watches', () => {
  test('gets the present state at once, then each change once', async () => {
    const following = watchers();
    await startSocket(following);
    const got = stream();
    await eventually('first event', () => got.text !== '');
    view = { state: 'held', token: '5', expiresInSeconds: 3 };
    following.tell(view);
    following.tell({ ...view, expiresInSeconds: 4 });
    following.tell({ state: 'lost', reason: 'HolderChanged' });
    await eventually('loss', () => got.text.includes('lost'));
    expect(got.text).toBe(
      'event: waiting\ndata: {"state":"waiting"}\n\n' +
        'event: held\ndata: {"state":"held","token":"5","expiresInSeconds":3}\n\n' +
        'event: lost\ndata: {"state":"lost","reason":"HolderChanged"}\n\n',
    );
  });

  test('is refused as the 33rd, and let in again when one leaves', async () => {
    await startSocket();
    const streams = Array.from({ length: 32 }, () => stream());
    await eventually('32 streams', () => streams.every(({ status }) => status === 200));
    expect(await ask('GET', '/v1/watch')).toMatchObject({
      status: 503,
      body: expect.stringContaining('TooManyWatchers'),
    });
    open[0]?.destroy();
    const late = stream();
    await eventually('one more', () => {
      if (late.status === 503) Object.assign(late, stream());
      return late.status === 200;
    });
  });

  test('is cut off when it does not read', async () => {
    const following = watchers();
    await startSocket(following);
    const socket = connect(socketPath(), () => socket.write('GET /v1/watch HTTP/1.1\r\nhost: a\r\n\r\n'));
    open.push(socket);
    socket.on('error', () => undefined);
    socket.pause();
    await eventually('connected', () => socket.readyState === 'open');
    await new Promise((wake) => setTimeout(wake, 100));
    for (let count = 0; count < 20_000; count += 1)
      following.tell({ state: 'held', token: String(count), expiresInSeconds: 1 });
    const good = stream();
    await eventually('others are served', () => good.status === 200);
    socket.resume();
    await eventually('cut off', () => socket.destroyed || socket.readableEnded);
  });
});

describe('the probe', () => {
  test('is held until the gate opens, and answered at once then', async () => {
    const gate = await startProbe();
    const got = stream('/started');
    await new Promise((wake) => setTimeout(wake, 100));
    expect(got.status).toBe(0);
    gateOpen = true;
    gate.open();
    await eventually('started', () => got.status === 200);
  });

  test('is not let in by an opening that is over already', async () => {
    const gate = await startProbe();
    const got = stream('/started');
    await new Promise((wake) => setTimeout(wake, 100));
    gate.open();
    await new Promise((wake) => setTimeout(wake, 100));
    expect(got.status).toBe(0);
  });

  test('of the kubelet always finds a place: above 16 the oldest gives way', async () => {
    const gate = await startProbe();
    const flood: ReturnType<typeof stream>[] = [];
    for (let count = 0; count < 16; count += 1) flood.push(stream('/started'));
    await new Promise((wake) => setTimeout(wake, 200));
    expect(flood.every(({ status }) => status === 0)).toBe(true);
    const kubelet = stream('/started');
    await eventually('one gave way', () => flood.filter(({ status }) => status === 503).length === 1);
    gateOpen = true;
    gate.open();
    await eventually('kubelet', () => kubelet.status === 200);
  });

  test('server answers /metrics and /healthz, and changes nothing for anybody', async () => {
    await startProbe();
    expect(await ask('GET', '/metrics')).toEqual({ status: 200, body: 'kilit_sidecar_held 0\n' });
    expect(await ask('GET', '/healthz')).toEqual({ status: 200, body: 'ok\n' });
    expect((await ask('POST', '/v1/release')).status).toBe(404);
    expect((await ask('POST', '/started')).status).toBe(405);
  });
});
