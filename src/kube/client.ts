import { request as httpRequest } from 'node:http';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { KubeConfig } from '@kubernetes/client-node';
import { ApiError } from './errors.ts';

export type Verb = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

export interface KubeRequest {
  readonly verb: Verb;
  /** Absolute path with the query, such as `/api/v1/nodes?limit=500`. */
  readonly path: string;
  readonly body?: unknown;
  readonly signal?: AbortSignal;
  /** @default 10_000 */
  readonly timeoutMs?: number;
  /** The answer is no JSON, a log for example, and is given as it is. @default json */
  readonly answer?: 'json' | 'text';
}

/**
 * Plain JSON requests to the API server.
 *
 * Two reasons not to use the generated clients: they turn MicroTimes into `Date`, which drops microseconds that a lease
 * is compared by, and client-node 2.0.1 makes a new connection pool for every request (`KubeConfig.createDispatcher`).
 * The credentials, their rotation and all watches are client-node's.
 */
export interface KubeClient {
  /**
   * The parsed answer.
   *
   * @throws ApiError with the server's reason and message; status 0 when no answer came within the timeout.
   */
  request<Answer>(request: KubeRequest): Promise<Answer>;
  close(): void;
}

export interface ClientObserver {
  /** `code` is the HTTP status, 0 when no answer came. */
  requested(verb: Verb, code: number, durationSeconds: number): void;
}

/** One request may hang 34 s at the server; a reconcile pass must not. */
const REQUEST_TIMEOUT_MS = 10_000;
const LARGEST_ANSWER_BYTES = 256 * 1024 * 1024;
const CONNECTIONS = 16;

export function createKubeClient(config: KubeConfig, observer?: ClientObserver): KubeClient {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  return {
    async request<Answer>(request: KubeRequest): Promise<Answer> {
      const startedAt = performance.now();
      let code = 0;
      try {
        const answer = await send(config, agent, request);
        code = answer.status;
        if (code < 200 || code > 299) throw toApiError(request, answer);
        return (request.answer === 'text' ? answer.text : JSON.parse(answer.text)) as Answer;
      } catch (err) {
        if (err instanceof ApiError) throw err;
        throw new ApiError(0, 'Unreachable', `${request.verb} ${request.path}: ${String(err)}`, { cause: err });
      } finally {
        observer?.requested(request.verb, code, (performance.now() - startedAt) / 1000);
      }
    },
    close: () => agent.destroy(),
  };
}

interface Answer {
  readonly status: number;
  readonly text: string;
}

async function send(config: KubeConfig, agent: Agent, request: KubeRequest): Promise<Answer> {
  const options: RequestOptions = {};
  await config.applyToHTTPSOptions(options);
  const cluster = config.getCurrentCluster();
  if (cluster?.server === undefined) throw new Error('the kubeconfig has no current cluster');
  // The server may stand below a path, as behind a gateway.
  const url = new URL(cluster.server.replace(/\/+$/, '') + request.path);
  // `kubectl proxy` has no TLS; client-node's own agent knows the way through a proxy.
  const secure = url.protocol === 'https:';
  const through = { ...(secure && { agent }), ...(cluster.proxyUrl !== undefined && { agent: options.agent }) };
  const body = request.body === undefined ? undefined : Buffer.from(JSON.stringify(request.body));
  const timeout = AbortSignal.timeout(request.timeoutMs ?? REQUEST_TIMEOUT_MS);
  return await new Promise<Answer>((resolve, reject) => {
    const { agent: _, ...plain } = options;
    const req = (secure ? httpsRequest : httpRequest)(
      url,
      {
        ...plain,
        ...through,
        method: request.verb,
        signal: request.signal === undefined ? timeout : AbortSignal.any([timeout, request.signal]),
        headers: {
          ...(options.headers as Record<string, string> | undefined),
          accept: 'application/json',
          ...(body !== undefined && { 'content-type': contentType(request.verb), 'content-length': body.length }),
        },
      },
      (response) => {
        const chunks: Buffer[] = [];
        let size = 0;
        response.on('data', (chunk: Buffer) => {
          size += chunk.length;
          if (size > LARGEST_ANSWER_BYTES) req.destroy(new Error('the answer is too large'));
          else chunks.push(chunk);
        });
        response.on('end', () =>
          resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString('utf8') }),
        );
        response.on('error', reject);
      },
    );
    req.on('error', reject);
    req.end(body);
  });
}

const contentType = (verb: Verb): string => (verb === 'PATCH' ? 'application/merge-patch+json' : 'application/json');

function toApiError(request: KubeRequest, answer: Answer): ApiError {
  try {
    const status = JSON.parse(answer.text) as { readonly reason?: string; readonly message?: string };
    return new ApiError(answer.status, status.reason ?? '', status.message ?? answer.text.slice(0, 500));
  } catch {
    return new ApiError(
      answer.status,
      '',
      `${request.verb} ${request.path}: HTTP ${answer.status} ${answer.text.slice(0, 200)}`,
    );
  }
}
