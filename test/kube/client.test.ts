import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createKubeClient, type KubeClient } from '../../src/kube/client.ts';
import { ApiError } from '../../src/kube/errors.ts';
import { loadUserConfig } from '../../src/kube/user-config.ts';
import { writeKubeconfig } from '../support/kilit.ts';

const seen: string[] = [];
const server = createServer((request, response) => {
  seen.push(`${request.method} ${request.url}`);
  if (request.url?.endsWith('/log') === true) return response.end('not json\n');
  if (request.url?.endsWith('/gone') === true) return response.writeHead(404).end('404 page not found\n');
  return response.end('{"ok":true}');
});
let client: KubeClient;
beforeEach(async () => {
  seen.length = 0;
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  // As of `kubectl proxy --api-prefix=/k8s`, or behind a gateway.
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}/k8s/`;
  using kubeconfig = writeKubeconfig({ server: address, ca: '', token: 'secret' });
  const { config } = loadUserConfig({ kubeconfig: kubeconfig.path, context: undefined, env: {} });
  client = createKubeClient(config);
});
afterEach(async () => {
  client.close();
  server.closeAllConnections();
  server.close();
  await once(server, 'close');
});

test('asks a server that stands below a path, also without TLS', async () => {
  expect(await client.request({ verb: 'GET', path: '/api/v1/pods?limit=1' })).toEqual({ ok: true });
  expect(seen).toEqual(['GET /k8s/api/v1/pods?limit=1']);
});

test('gives an answer that is no JSON as it is when that was asked for, and else refuses it', async () => {
  expect(await client.request({ verb: 'GET', path: '/log', answer: 'text' })).toBe('not json\n');
  await expect(client.request({ verb: 'GET', path: '/log' })).rejects.toMatchObject({
    status: 0,
    reason: 'Unreachable',
  });
});

test('an answer that is no Status keeps its code', async () => {
  const refused = client.request({ verb: 'GET', path: '/gone' });
  await expect(refused).rejects.toBeInstanceOf(ApiError);
  await expect(refused).rejects.toMatchObject({ status: 404, reason: '' });
});
