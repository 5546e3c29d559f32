/** A bad API server: what stands before the good one and is late, makes errors, or never answers. */
import { readFileSync } from 'node:fs';
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import { Agent, createServer, request } from 'node:https';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { TLSSocket } from 'node:tls';
import type { Cluster } from '../../../tools/cluster/index.ts';
import { credentials } from '../../support/kube.ts';
import type { Random } from '../random.ts';

/** `errors`: half of the answers are errors; of half of those requests the API server has done what was asked. */
export type Temper = 'late' | 'errors' | 'silent';

interface Proxy extends AsyncDisposable {
  readonly port: number;
}

interface Exchange {
  readonly from: IncomingMessage;
  readonly to: ServerResponse;
  /** For whom it is asked; undefined: for whom its token says. */
  readonly user: OutgoingHttpHeaders | undefined;
}

const LATE_MS = { from: 500, to: 4000 } as const;
const ERROR_CODES = [429, 500, 503, 504] as const;

/** It has the API server's certificate. A client's own certificate cannot be passed on, so its user is impersonated. */
export async function openProxy(cluster: Cluster, temper: Temper, random: Random): Promise<Proxy> {
  const pki = (file: string): Buffer => readFileSync(join(dirname(cluster.kubeconfigPath), 'pki', file));
  const { server: target, ca, cert, key } = credentials(cluster.kubeconfigPath);
  const bare = new Agent({ keepAlive: true, ca });
  const admin = new Agent({ keepAlive: true, ca, cert, key });

  const forward = (
    { from, to, user }: Exchange,
    onAnswer: (answer: IncomingMessage) => void,
    onError: () => void,
  ): void => {
    const headers = { ...from.headers, ...user };
    const sent = request(new URL(from.url ?? '/', target), {
      method: from.method ?? 'GET',
      headers,
      agent: user === undefined ? bare : admin,
    });
    sent.on('response', onAnswer).on('error', onError);
    from.pipe(sent);
    to.once('close', () => {
      if (!to.writableFinished) sent.destroy();
    });
  };

  const server = createServer(
    {
      cert: pki('apiserver.crt'),
      key: pki('apiserver.key'),
      ca: pki('ca.crt'),
      requestCert: true,
      rejectUnauthorized: false,
    },
    (from, to) => void answer(from, to),
  );
  async function answer(from: IncomingMessage, to: ServerResponse): Promise<void> {
    to.on('error', () => {});
    const user = from.headers.authorization === undefined ? impersonation(from.socket as TLSSocket) : undefined;
    if (temper === 'silent') return;
    if (temper === 'late') await sleep(random.between(LATE_MS.from, LATE_MS.to));
    const dice = temper === 'errors' ? random.between(1, 4) : 4;
    const fail = (): void => {
      if (to.headersSent) return void to.destroy();
      to.writeHead(random.pick(ERROR_CODES), { 'content-type': 'application/json' });
      to.end(JSON.stringify({ kind: 'Status', apiVersion: 'v1', status: 'Failure', message: 'injected error' }));
    };
    if (dice === 1) {
      from.resume();
      return fail();
    }
    forward(
      { from, to, user },
      (answered) => {
        answered.on('error', () => to.destroy());
        if (dice === 2 && from.method !== 'GET') {
          answered.resume().on('end', fail);
          return;
        }
        to.writeHead(answered.statusCode ?? 500, answered.headers);
        answered.pipe(to);
      },
      fail,
    );
  }
  server.on('tlsClientError', () => {});
  server.on('connection', (socket) => socket.on('error', () => {}));
  await new Promise<void>((resolve) => {
    server.listen(0, new URL(target).hostname, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === 'object' && address !== null ? address.port : 0,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      bare.destroy();
      admin.destroy();
    },
  };
}

/** Undefined for a client without a certificate of this cluster: it stays anonymous. */
function impersonation(socket: TLSSocket): OutgoingHttpHeaders | undefined {
  const { CN, O } = (socket.authorized && socket.getPeerCertificate()?.subject) || {};
  return typeof CN === 'string'
    ? { 'impersonate-user': CN, ...(O !== undefined && { 'impersonate-group': O }) }
    : undefined;
}
