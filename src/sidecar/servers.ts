import { chmodSync } from 'node:fs';
import type { Server } from 'node:http';
import type { LockView, Refusal } from '../core/holder-view.ts';
import type { Gate } from './gate.ts';
import { createHttpServer, type Handler, sendJson, sendText } from './http.ts';
import type { Watchers } from './watchers.ts';

/** What the programs of the Pod may ask, over the Unix socket. */
export function createSocketServer(ports: {
  readonly view: () => LockView;
  readonly watchers: Watchers;
  /** `undefined`: granted, and done when this returns. */
  readonly release: () => Refusal | undefined;
  readonly standDown: () => Refusal | undefined;
}): Server {
  const act =
    (action: () => Refusal | undefined): Handler =>
    (_request, response) => {
      const refusal = action();
      return refusal === undefined ? sendJson(response, 200, ports.view()) : sendJson(response, 409, refusal);
    };
  return createHttpServer({
    '/v1/lock': { GET: (_request, response) => sendJson(response, 200, ports.view(), { 'cache-control': 'no-store' }) },
    '/v1/watch': { GET: (_request, response) => ports.watchers.add(response) },
    '/v1/release': { POST: act(ports.release) },
    '/v1/stood-down': { POST: act(ports.standDown) },
  });
}

/** What anybody who reaches the Pod may ask, over TCP: nothing that changes anything. */
export function createProbeServer(ports: { readonly gate: Gate; readonly metrics: () => string }): Server {
  return createHttpServer({
    '/started': { GET: (_request, response) => ports.gate.answer(response) },
    '/metrics': { GET: (_request, response) => sendText(response, 200, ports.metrics()) },
    '/healthz': { GET: (_request, response) => sendText(response, 200, 'ok\n') },
  });
}

/** Listens; mode 0666 lets programs of other users connect, also over a read-only mount. Calls `fail` on any error. */
export function listen(
  server: Server,
  where: { readonly path: string } | { readonly port: number },
  fail: (error: Error) => void,
): void {
  server.on('error', fail);
  server.listen(where, () => {
    if (!('path' in where)) return;
    try {
      chmodSync(where.path, 0o666);
    } catch (error) {
      fail(error as Error);
    }
  });
}
