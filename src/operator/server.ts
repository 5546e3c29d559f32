import { createServer, type Server } from 'node:http';
import type { Registry } from 'prom-client';

/**
 * `/healthz` (the process answers), `/readyz` (the caches are filled) and `/metrics`.
 *
 * Readiness does not depend on leadership: a rolling update would wait for ever (LINBIT/k8s-await-election#1).
 */
export async function startServer(options: {
  readonly port: number;
  readonly registry: Registry;
  readonly isReady: () => boolean;
}): Promise<Server> {
  const server = createServer((request, response) => {
    const answer = (status: number, text: string, type = 'text/plain; charset=utf-8') => {
      response.writeHead(status, { 'content-type': type }).end(text);
    };
    if (request.method !== 'GET' && request.method !== 'HEAD') return answer(405, 'Only GET is allowed.\n');
    switch (new URL(request.url ?? '/', 'http://localhost').pathname) {
      case '/healthz':
        return answer(200, 'ok\n');
      case '/readyz':
        return options.isReady() ? answer(200, 'ok\n') : answer(503, 'The caches are not filled yet.\n');
      case '/metrics':
        options.registry.metrics().then(
          (text) => answer(200, text, options.registry.contentType),
          (err: unknown) => answer(500, `${String(err)}\n`),
        );
        return undefined;
      default:
        return answer(404, 'Try /healthz, /readyz or /metrics.\n');
    }
  });
  server.headersTimeout = 5_000;
  server.requestTimeout = 10_000;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(options.port, resolve);
  });
  return server;
}
