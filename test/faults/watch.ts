/** Every revision of the objects of one collection, also of those that came while the API server did not answer. */
import { Agent, request } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { credentials } from '../support/kube.ts';

/** One state of an object, or its end. */
export interface Seen<Raw> {
  /** Wall clock of this machine when it arrived, milliseconds since 1970. */
  readonly at: number;
  readonly deleted: boolean;
  readonly object: Raw;
}

interface Meta {
  readonly metadata: { readonly name: string; readonly resourceVersion: string };
}

export interface Watch<Raw> extends AsyncDisposable {
  /** In the order of their revisions. */
  readonly seen: readonly Seen<Raw>[];
  /** The present objects by name. */
  readonly now: ReadonlyMap<string, Raw>;
  /** How often revisions may have been missed, since the API server no longer had them. */
  gaps(): number;
}

interface Event<Raw> {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK' | 'ERROR';
  readonly object: Raw & { readonly code?: number };
}

const RETRY_MS = 200;
/** The API server ends a watch after this; a dead connection is noticed a little later. */
const WATCH_SECONDS = 30;

/** Starts before the first object is there. A broken watch goes on from the last revision that it has seen. */
export function watchAll<Raw extends Meta>(kubeconfig: string, path: string): Watch<Raw> {
  const { server, ca, cert, key } = credentials(kubeconfig);
  const agent = new Agent({ keepAlive: true, ca, cert, key });
  const stop = new AbortController();
  const seen: Seen<Raw>[] = [];
  const now = new Map<string, Raw>();
  let revision = '';
  let gaps = 0;

  const take = ({ type, object }: Event<Raw>): void => {
    if (type === 'ERROR') {
      if (object.code !== 410) return;
      gaps += 1;
      revision = '';
      return;
    }
    revision = object.metadata.resourceVersion;
    if (type === 'BOOKMARK') return;
    const { name } = object.metadata;
    const deleted = type === 'DELETED';
    if (!deleted && now.get(name)?.metadata.resourceVersion === revision) return;
    seen.push({ at: Date.now(), deleted, object });
    if (deleted) now.delete(name);
    else now.set(name, object);
  };

  const once = (): Promise<void> =>
    new Promise((resolve) => {
      // Without a revision it begins with what is there.
      const query = `watch=true&allowWatchBookmarks=true&timeoutSeconds=${WATCH_SECONDS}&resourceVersion=${revision}`;
      const sent = request(new URL(`${path}?${query}`, server), { agent, signal: stop.signal }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => {
          text += chunk;
          const lines = text.split('\n');
          text = lines.pop() ?? '';
          for (const line of lines) if (response.statusCode === 200) take(JSON.parse(line) as Event<Raw>);
        });
        if (response.statusCode === 410) {
          gaps += 1;
          revision = '';
        }
        response.on('error', () => {}).on('close', resolve);
      });
      sent.setTimeout((WATCH_SECONDS + 5) * 1000, () => sent.destroy());
      sent.on('error', () => resolve()).end();
    });

  const watching = (async () => {
    while (!stop.signal.aborted) {
      await once();
      if (!stop.signal.aborted) await sleep(RETRY_MS);
    }
  })();
  return {
    seen,
    now,
    gaps: () => gaps,
    async [Symbol.asyncDispose]() {
      stop.abort();
      await watching;
      agent.destroy();
    },
  };
}
