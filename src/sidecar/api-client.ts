import { readFileSync } from 'node:fs';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import { join } from 'node:path';

/** An answer, or why there is none. Never an exception: a failed request is an event like others. */
export type ApiReply =
  | { readonly kind: 'answer'; readonly status: number; readonly body: string }
  | { readonly kind: 'timedOut' }
  | { readonly kind: 'failed'; readonly message: string };

export interface ApiRequest {
  readonly method: 'GET' | 'PUT' | 'POST';
  readonly path: string;
  readonly body?: string;
  /** For everything: connecting, sending, and the whole answer. */
  readonly timeoutMs: number;
}

/** How a stream of lines ended. */
export type StreamEnd =
  | { readonly kind: 'ended' }
  | { readonly kind: 'refused'; readonly status: number; readonly body: string }
  | { readonly kind: 'stalled' }
  | { readonly kind: 'failed'; readonly message: string };

export interface ApiClient {
  send(options: ApiRequest): Promise<ApiReply>;
  /** Calls `onLine` for each line; `false` ends the stream. */
  stream(options: {
    readonly path: string;
    readonly idleTimeoutMs: number;
    readonly onLine: (line: string) => boolean;
  }): Promise<StreamEnd>;
  close(): void;
}

/** A Lease is a few kilobytes; a larger answer is not ours. */
const LONGEST_BODY = 256 * 1024;
/** After this much silence the kernel asks the other side every second, ten times, whether it is still there. */
const KEEP_ALIVE_MS = 10_000;
const CONNECT_TIMEOUT_MS = 10_000;

/**
 * A small client of the API server over `node:https`.
 *
 * The service account's token is read again for each request (the kubelet replaces the file), the CA whenever a new
 * connection pool is made, which is after every failure: so a rotated CA heals by itself, and a retry never goes to a
 * connection that is as dead as the one that just failed.
 */
export function createApiClient(settings: {
  readonly host: string;
  readonly port: number;
  readonly dir: string;
}): ApiClient {
  let pool: Agent | undefined;
  const read = (name: string) => readFileSync(join(settings.dir, name), 'utf8');
  const dropPool = () => {
    pool?.destroy();
    pool = undefined;
  };
  const open = (agent: Agent, options: { readonly method: string; readonly path: string; readonly body?: string }) =>
    request({
      host: settings.host,
      port: settings.port,
      agent,
      method: options.method,
      path: options.path,
      headers: {
        authorization: `Bearer ${read('token').trim()}`,
        accept: 'application/json',
        'user-agent': 'kilit-sidecar',
        ...(options.body === undefined
          ? {}
          : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(options.body) }),
      },
    });

  const send = async (options: ApiRequest): Promise<ApiReply> => {
    const reply = await attempt(options.timeoutMs, () => {
      pool ??= new Agent({
        keepAlive: true,
        maxSockets: 4,
        maxFreeSockets: 1,
        keepAliveMsecs: KEEP_ALIVE_MS,
        ca: read('ca.crt'),
      });
      const sent = open(pool, options);
      sent.end(options.body);
      return sent;
    });
    if (reply.kind !== 'answer') dropPool();
    return reply;
  };

  const streams = new Set<ClientRequest>();
  const stream: ApiClient['stream'] = async ({ path, idleTimeoutMs, onLine }) => {
    try {
      const sent = open(new Agent({ keepAlive: false, ca: read('ca.crt') }), { method: 'GET', path });
      streams.add(sent);
      const end = await readLines(sent, { idleTimeoutMs, onLine });
      streams.delete(sent);
      sent.destroy();
      return end;
    } catch (error) {
      return { kind: 'failed', message: messageOf(error) };
    }
  };

  return {
    send,
    stream,
    close() {
      dropPool();
      for (const sent of streams) sent.destroy();
    },
  };
}

function attempt(timeoutMs: number, start: () => ClientRequest): Promise<ApiReply> {
  return new Promise((resolve) => {
    let sent: ClientRequest | undefined;
    const finish = (reply: ApiReply) => {
      clearTimeout(timer);
      resolve(reply);
      if (reply.kind !== 'answer') sent?.destroy();
    };
    const fail = (error: unknown) => finish({ kind: 'failed', message: messageOf(error) });
    const timer = setTimeout(() => finish({ kind: 'timedOut' }), timeoutMs);
    try {
      sent = start();
      sent.on('error', fail);
      sent.on('response', (response) => {
        readBody(response).then((body) => finish({ kind: 'answer', status: response.statusCode ?? 0, body }), fail);
      });
    } catch (error) {
      fail(error);
    }
  });
}

async function readBody(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    if (length > LONGEST_BODY) throw new Error(`The answer is longer than ${LONGEST_BODY} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function readLines(
  sent: ClientRequest,
  { idleTimeoutMs, onLine }: { readonly idleTimeoutMs: number; readonly onLine: (line: string) => boolean },
): Promise<StreamEnd> {
  return new Promise((resolve) => {
    const fail = (error: unknown) => finish({ kind: 'failed', message: messageOf(error) });
    let idle = setTimeout(() => finish({ kind: 'stalled' }), CONNECT_TIMEOUT_MS);
    const finish = (end: StreamEnd) => {
      clearTimeout(idle);
      resolve(end);
    };
    sent.on('socket', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_MS));
    sent.on('error', fail);
    sent.on('response', (response) => {
      if (response.statusCode !== 200) {
        readBody(response).then((body) => finish({ kind: 'refused', status: response.statusCode ?? 0, body }), fail);
        return;
      }
      let rest = '';
      response.setEncoding('utf8');
      const touch = () => {
        clearTimeout(idle);
        idle = setTimeout(() => finish({ kind: 'stalled' }), idleTimeoutMs);
      };
      touch();
      response.on('data', (text: string) => {
        touch();
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) if (line !== '' && !onLine(line)) return finish({ kind: 'ended' });
        if (rest.length > LONGEST_BODY)
          finish({ kind: 'failed', message: `A line is longer than ${LONGEST_BODY} characters` });
      });
      response.on('error', fail);
      response.on('end', () => finish({ kind: 'ended' }));
      response.on('close', () => finish({ kind: 'ended' }));
    });
    sent.end();
  });
}

function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // A connection that fails over several addresses has an empty message and its causes inside.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(messageOf).join('; ');
  return error.message;
}
