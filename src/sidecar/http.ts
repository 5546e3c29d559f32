import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

/** Answers one request. Its body, if any, has been read and dropped: no request of this API needs one. */
export type Handler = (request: IncomingMessage, response: ServerResponse) => void;
/** Path → method → handler. */
export type Routes = Readonly<Record<string, Readonly<Partial<Record<'GET' | 'POST', Handler>>>>>;

/** Bounds on what a client may send or keep open. */
const LIMITS = {
  connections: 64,
  headerBytes: 8192,
  headerCount: 64,
  bodyBytes: 1024,
  /** A client that has not sent its request by then is cut off. Answers may take as long as they like. */
  requestMs: 5000,
} as const;

/** An HTTP server with bounds on everything, whose faults are JSON: `{ code, message }`. */
export function createHttpServer(routes: Routes): Server {
  const server = createServer(
    {
      maxHeaderSize: LIMITS.headerBytes,
      headersTimeout: LIMITS.requestMs,
      requestTimeout: LIMITS.requestMs,
      connectionsCheckingInterval: LIMITS.requestMs,
      keepAliveTimeout: LIMITS.requestMs,
    },
    (request, response) => answer(routes, request, response),
  );
  server.maxConnections = LIMITS.connections;
  server.maxHeadersCount = LIMITS.headerCount;
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => refuseUnreadable(error.code, socket as Socket));
  return server;
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: object,
  headers: Readonly<Record<string, string>> = {},
): void {
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    ...headers,
  });
  response.end(text);
}

export function sendText(response: ServerResponse, status: number, text: string): void {
  response.writeHead(status, {
    'content-type': 'text/plain; charset=utf-8',
    'content-length': Buffer.byteLength(text),
  });
  response.end(text);
}

function answer(routes: Routes, request: IncomingMessage, response: ServerResponse): void {
  const path = (request.url ?? '').split('?', 1)[0] ?? '';
  const methods = Object.hasOwn(routes, path) ? routes[path] : undefined;
  if (methods === undefined) {
    const known = Object.keys(routes).join(', ');
    return sendJson(response, 404, { code: 'NotFound', message: `There is no such path. Known: ${known}` });
  }
  const method = request.method ?? '';
  const handler = method === 'GET' || method === 'POST' ? methods[method] : undefined;
  if (handler === undefined) {
    const allow = Object.keys(methods).join(', ');
    return sendJson(response, 405, { code: 'MethodNotAllowed', message: `${path} answers ${allow} only` }, { allow });
  }
  drop(request, response, () => handler(request, response));
}

/** Reads the body and forgets it; one that is too long is refused before the handler runs. */
function drop(request: IncomingMessage, response: ServerResponse, then: () => void): void {
  let length = Number(request.headers['content-length'] ?? 0);
  const refuse = () => {
    const message = `The body must be at most ${LIMITS.bodyBytes} bytes long`;
    sendJson(response, 413, { code: 'BodyTooLarge', message }, { connection: 'close' });
    response.on('finish', () => request.destroy());
  };
  if (length > LIMITS.bodyBytes) return refuse();
  length = 0;
  const count = (chunk: Buffer) => {
    length += chunk.length;
    if (length <= LIMITS.bodyBytes) return;
    request.off('data', count);
    request.off('end', then);
    refuse();
  };
  request.on('data', count);
  request.on('end', then);
  request.on('error', () => response.destroy());
}

function refuseUnreadable(code: string | undefined, socket: Socket): void {
  if (!socket.writable || code === 'ECONNRESET') return void socket.destroy();
  const [status, fault] =
    code === 'HPE_HEADER_OVERFLOW'
      ? [
          '431 Request Header Fields Too Large',
          { code: 'HeadersTooLarge', message: `Headers must be at most ${LIMITS.headerBytes} bytes long` },
        ]
      : code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? [
            '408 Request Timeout',
            { code: 'RequestTimeout', message: `The request must arrive within ${LIMITS.requestMs / 1000} s` },
          ]
        : ['400 Bad Request', { code: 'BadRequest', message: 'This is no HTTP request' }];
  const text = `${JSON.stringify(fault)}\n`;
  socket.end(
    `HTTP/1.1 ${status}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\nconnection: close\r\n\r\n${text}`,
  );
}
