import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { type Certificate, makeCertificate } from './certificate.ts';

export interface FakeLease {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace: string;
    uid: string;
    resourceVersion: string;
    annotations?: Record<string, string>;
  };
  spec: Record<string, unknown>;
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly authorization: string | undefined;
  readonly body: string;
}

/** Answers a request in place of the fake; `false`: the fake shall answer. */
export type Fault = (request: SeenRequest, response: ServerResponse) => boolean;

/** One Lease behind the API server's protocol: compare-and-swap by revision, list, watch. No policy, no RBAC. */
export interface FakeApi extends AsyncDisposable {
  readonly port: number;
  readonly ca: string;
  readonly requests: SeenRequest[];
  readonly watches: () => number;
  lease(): FakeLease | undefined;
  /** Writes past all checks, as the operator's next write; `undefined` deletes. */
  set(lease: FakeLease | undefined): void;
  /** Grants to `holder` as the operator does. */
  grant(holder: string, options: { token: string; seconds?: number; annotations?: Record<string, string> }): void;
  fault(fault: Fault | undefined): void;
  endWatches(lastLine?: string): void;
}

const NAME = 'kilit.billing';

export async function startFakeApi(options: { readonly certificate?: Certificate } = {}): Promise<FakeApi> {
  const certificate = options.certificate ?? makeCertificate();
  const requests: SeenRequest[] = [];
  const watches = new Set<ServerResponse>();
  const sockets = new Set<Socket>();
  let revision = 1000;
  let lease: FakeLease | undefined;
  let fault: Fault | undefined;

  const emit = (type: string, object: FakeLease) => {
    for (const watch of watches) watch.write(`${JSON.stringify({ type, object })}\n`);
  };
  const set = (next: FakeLease | undefined) => {
    revision += 1;
    const type = next === undefined ? 'DELETED' : lease === undefined ? 'ADDED' : 'MODIFIED';
    const object = next ?? lease;
    lease = next === undefined ? undefined : withRevision(next, revision);
    if (object !== undefined) emit(type, withRevision(object, revision));
  };

  const put = (response: ServerResponse, body: string) => {
    const wanted = JSON.parse(body) as FakeLease;
    if (lease === undefined) return fail(response, 404, 'not found');
    if (wanted.metadata.resourceVersion !== lease.metadata.resourceVersion)
      return fail(response, 409, 'the object has been modified');
    set(wanted);
    return send(response, 200, lease);
  };

  const answer = (request: SeenRequest, response: ServerResponse) => {
    const url = new URL(request.path, 'https://api');
    if (request.method === 'POST') return send(response, 201, {});
    if (request.method === 'PUT') return put(response, request.body);
    if (url.pathname.endsWith(`/leases/${NAME}`)) {
      return lease === undefined ? fail(response, 404, 'not found') : send(response, 200, lease);
    }
    if (url.searchParams.get('watch') === '1') {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.flushHeaders();
      if (
        lease !== undefined &&
        Number(lease.metadata.resourceVersion) > Number(url.searchParams.get('resourceVersion'))
      ) {
        response.write(`${JSON.stringify({ type: 'MODIFIED', object: lease })}\n`);
      }
      watches.add(response);
      response.on('close', () => watches.delete(response));
      return;
    }
    return send(response, 200, {
      metadata: { resourceVersion: String(revision) },
      items: lease === undefined ? [] : [lease],
    });
  };

  const serve = async (incoming: IncomingMessage, response: ServerResponse) => {
    const body = await readAll(incoming);
    const { method = '', url: path = '', headers } = incoming;
    const request = { method, path, authorization: headers.authorization, body };
    requests.push(request);
    if (!fault?.(request, response)) answer(request, response);
  };
  const server = createServer({ cert: certificate.cert, key: certificate.key }, (incoming, response) => {
    void serve(incoming, response);
  });
  server.on('secureConnection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    socket.on('error', () => undefined);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');

  return {
    port: (server.address() as AddressInfo).port,
    ca: certificate.cert,
    requests,
    watches: () => watches.size,
    lease: () => lease,
    set,
    grant(holder, { token, seconds = 2, annotations }) {
      const time = `${new Date().toISOString().slice(0, 23)}000Z`;
      set(
        aLease({
          annotations: annotations ?? { 'kilit.dev/fencing-token': token },
          spec: { holderIdentity: holder, leaseDurationSeconds: seconds, acquireTime: time, renewTime: time },
        }),
      );
    },
    fault(next) {
      fault = next;
    },
    endWatches(lastLine) {
      for (const watch of watches) {
        watches.delete(watch);
        watch.end(lastLine === undefined ? undefined : `${lastLine}\n`);
      }
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

export function aLease(
  parts: {
    readonly annotations?: Record<string, string>;
    readonly spec?: Record<string, unknown>;
    readonly revision?: string;
  } = {},
): FakeLease {
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: {
      name: NAME,
      namespace: 'shop',
      uid: 'lease-uid',
      resourceVersion: parts.revision ?? '1',
      annotations: parts.annotations ?? { 'kilit.dev/fencing-token': '0' },
    },
    spec: { holderIdentity: '', leaseDurationSeconds: 15, ...parts.spec },
  };
}

const withRevision = (lease: FakeLease, revision: number): FakeLease => ({
  ...lease,
  metadata: { ...lease.metadata, resourceVersion: String(revision) },
});

export function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

export function fail(response: ServerResponse, code: number, message: string): void {
  send(response, code, { kind: 'Status', status: 'Failure', code, message });
}

async function readAll(incoming: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of incoming) text += String(chunk);
  return text;
}
