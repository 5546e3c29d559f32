import type { ServerResponse } from 'node:http';
import { sendJson, sendText } from './http.ts';

/**
 * The startup probe's long poll: requests are held until the gate opens, and then answered at once.
 *
 * The kubelet sends one at a time, but anybody who reaches the Pod can send more. Above the bound the oldest is answered
 * with 503: the kubelet asks again within a second and always gets in.
 */
export interface Gate {
  /** Answers now or at the opening. `isOpen` is asked each time: an opened gate is shut again past the deadline. */
  readonly answer: (response: ServerResponse) => void;
  /** Answers all that wait. */
  readonly open: () => void;
}

const MOST_WAITING = 16;

export function createGate(isOpen: () => boolean): Gate {
  const waiting = new Set<ServerResponse>();
  const admit = (response: ServerResponse) => sendText(response, 200, 'started\n');
  return {
    answer(response) {
      if (isOpen()) return admit(response);
      const [oldest] = waiting;
      if (oldest !== undefined && waiting.size >= MOST_WAITING) {
        waiting.delete(oldest);
        sendJson(oldest, 503, { code: 'TooManyRequests', message: 'A newer request took the place of this one' });
      }
      waiting.add(response);
      response.on('close', () => waiting.delete(response));
    },
    open() {
      if (!isOpen()) return;
      for (const response of waiting) admit(response);
      waiting.clear();
    },
  };
}
