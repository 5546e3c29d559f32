import { setTimeout as sleep } from 'node:timers/promises';
import { type KubeConfig, Watch } from '@kubernetes/client-node';
import type { ListMoment, RawObject } from './cache.ts';
import type { KubeClient } from './client.ts';

export interface WatchDeps {
  readonly config: KubeConfig;
  readonly client: KubeClient;
  readonly log: WatchLog;
}

interface WatchLog {
  warn(fields: object, message: string): void;
  debug(fields: object, message: string): void;
}

/** What of a kind is followed. */
export interface Selection {
  /** Collection path, for logs too. */
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

/** Where it goes. */
interface Copy<Raw> extends Selection {
  beforeList(): ListMoment;
  takeList(items: readonly Raw[], listRevision: string | undefined, asked: ListMoment): void;
  put(raw: Raw): void;
  remove(raw: Raw): void;
}

interface List<Raw> {
  readonly items?: readonly Raw[];
  readonly metadata?: { readonly resourceVersion?: string };
}

/** A list of many thousand objects on a slow API server takes longer than any other request. */
const LIST_TIMEOUT_MS = 60_000;
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 5_000;

/**
 * Lists and watches until `signal` aborts; resolves when the first list is in.
 *
 * A watch from a revision that the API server has not reached is answered by silence, until it is reached: after etcd
 * was restored without `--bump-revision` a watch that just goes on would see nothing, and later miss what lies between
 * (docs/kubernetes.md). The restore restarts the API server, so a watch that broke, or that could not be begun again, is
 * followed by a list. One that the API server ended, or that was silent for 30 s, is gone on with, lest the last state of
 * what is deleted meanwhile be missed; but only if the API server has reached all that was seen.
 *
 * That is why client-node's ListWatch, which goes on by itself, is not used; its Watch is.
 * Caveat: a restore within the 30 s in which a dead connection is not noticed, to a revision that is passed again by
 * then, is not seen.
 */
export function follow<Raw extends RawObject>(copy: Copy<Raw>, deps: WatchDeps, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  signal.addEventListener('abort', () => reject(signal.reason), { once: true });
  void followForEver(copy, deps, signal, resolve);
  return promise;
}

async function followForEver<Raw extends RawObject>(
  copy: Copy<Raw>,
  deps: WatchDeps,
  signal: AbortSignal,
  synced: () => void,
): Promise<void> {
  const { path } = copy;
  let retryMs = FIRST_RETRY_MS;
  while (!signal.aborted) {
    const startedAt = performance.now();
    try {
      const revision = await list(copy, deps, signal);
      synced();
      await watchFrom(revision, copy, deps, signal);
    } catch (err) {
      if (signal.aborted) return;
      deps.log.warn({ err, path, retrySeconds: retryMs / 1000 }, 'Watch failed; trying again');
    }
    if (performance.now() - startedAt > LONGEST_RETRY_MS) retryMs = FIRST_RETRY_MS;
    await pause(retryMs, signal);
    retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
  }
}

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  sleep(ms, undefined, { ref: false, signal }).catch(() => {});

async function list<Raw extends RawObject>(copy: Copy<Raw>, deps: WatchDeps, signal: AbortSignal): Promise<string> {
  const asked = copy.beforeList();
  const answer = await request<Raw>(copy, deps, signal);
  const revision = answer.metadata?.resourceVersion;
  copy.takeList(answer.items ?? [], revision, asked);
  return revision ?? '';
}

/** Watches, and watches on, until a list is needed. */
async function watchFrom<Raw extends RawObject>(
  revision: string,
  copy: Copy<Raw>,
  deps: WatchDeps,
  signal: AbortSignal,
): Promise<void> {
  for (let from = revision; ; ) {
    const startedAt = performance.now();
    const end = await watchOnce(from, copy, deps, signal);
    if (end === 'expired') return;
    from = end;
    // An API server that ends each watch at once must not be asked again at once.
    if (performance.now() - startedAt < FIRST_RETRY_MS) await pause(FIRST_RETRY_MS, signal);
    const { highest } = copy.beforeList();
    const answer = await request<Raw>(copy, deps, signal, 1);
    if (BigInt(answer.metadata?.resourceVersion ?? '0') < highest) return;
  }
}

const request = <Raw>(
  { path, labelSelector, fieldSelector }: Selection,
  { client }: WatchDeps,
  signal: AbortSignal,
  limit?: number,
): Promise<List<Raw>> =>
  client.request<List<Raw>>({
    verb: 'GET',
    path: withQuery(path, { labelSelector, fieldSelector, limit: limit?.toString() }),
    signal,
    timeoutMs: LIST_TIMEOUT_MS,
  });

/**
 * The revision to go on from, after the API server ended the watch or was silent; `expired`: it does not know it any more.
 *
 * @throws what broke the watch.
 */
async function watchOnce<Raw extends RawObject>(
  from: string,
  copy: Copy<Raw>,
  deps: WatchDeps,
  signal: AbortSignal,
): Promise<string> {
  const { path, labelSelector, fieldSelector } = copy;
  let revision = from;
  let expired = false;
  const { promise, resolve } = Promise.withResolvers<unknown>();
  const controller = await new Watch(deps.config).watch(
    path,
    {
      resourceVersion: from,
      ...(labelSelector !== undefined && { labelSelector }),
      ...(fieldSelector !== undefined && { fieldSelector }),
    },
    (phase: string, object: Raw & { readonly code?: number }) => {
      if (phase === 'ERROR') {
        expired = object.code === 410;
        if (!expired) resolve(new Error(`The watch failed: ${JSON.stringify(object).slice(0, 300)}`));
        return;
      }
      revision = object.metadata.resourceVersion;
      if (phase === 'DELETED') copy.remove(object);
      else if (phase === 'ADDED' || phase === 'MODIFIED') copy.put(object);
    },
    resolve,
  );
  const abort = () => controller.abort();
  signal.addEventListener('abort', abort, { once: true });
  if (signal.aborted) abort();
  const err = (await promise) as { readonly name?: string; readonly statusCode?: number } | null | undefined;
  signal.removeEventListener('abort', abort);
  controller.abort();
  if (expired || err?.statusCode === 410) return 'expired';
  if (err === null || err === undefined || err.name === 'TimeoutError') return revision;
  throw err;
}

export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, value);
  return params.size === 0 ? path : `${path}?${params.toString()}`;
}
