import type { ServerResponse } from 'node:http';
import type { LockView } from '../core/holder-view.ts';
import { sendJson } from './http.ts';

/** The programs that follow the lock by server-sent events. */
export interface Watchers {
  /** Sends the present state at once, then each change. */
  readonly add: (response: ServerResponse) => void;
  /** Sends `view` to all, unless it is the state they know. */
  readonly tell: (view: LockView) => void;
}

const MOST_WATCHERS = 32;
/** A program that does not read is cut off, not waited for; it can connect again and learns the present state. */
const MOST_UNREAD_BYTES = 16 * 1024;

/** Each event is named after the state (`waiting`, `held`, `unrenewed`, `losing`, `lost`); its data is the body of `GET /v1/lock`. */
export function createWatchers(view: () => LockView): Watchers {
  const watching = new Set<ServerResponse>();
  let told = '';
  const send = (response: ServerResponse, event: LockView) => {
    response.write(`event: ${event.state}\ndata: ${JSON.stringify(event)}\n\n`);
    if (response.writableLength > MOST_UNREAD_BYTES) response.destroy();
  };
  return {
    add(response) {
      if (watching.size >= MOST_WATCHERS) {
        const message = `At most ${MOST_WATCHERS} programs can watch at a time`;
        return sendJson(response, 503, { code: 'TooManyWatchers', message });
      }
      watching.add(response);
      response.on('close', () => watching.delete(response));
      response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-store' });
      send(response, view());
    },
    tell(event) {
      const key = `${event.state} ${event.token ?? ''}`;
      if (key === told) return;
      told = key;
      for (const response of watching) send(response, event);
    },
  };
}
