import {
  type KubeConfig,
  type KubernetesListObject,
  type KubernetesObject,
  ListWatch,
  Watch,
} from '@kubernetes/client-node';
import type { KubeClient } from './client.ts';

interface Metadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid: string;
  readonly resourceVersion: string;
}

/** An object of the API server as plain JSON. */
export interface RawObject {
  readonly metadata: Metadata;
}

export interface Entry<Raw, View> {
  readonly raw: Raw;
  readonly view: View;
}

/** A change in a cache: `entry` undefined when the object is gone, `previous` undefined when it is new. */
export interface Change<Raw, View> {
  readonly entry: Entry<Raw, View> | undefined;
  readonly previous: Entry<Raw, View> | undefined;
}

export interface CacheOptions<Raw, View> {
  /** Collection path, for logs too. */
  readonly path: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly view: (raw: Raw, previous: View | undefined) => View;
}

export interface WatchDeps {
  readonly config: KubeConfig;
  readonly client: KubeClient;
  readonly log: CacheLog;
}

interface CacheLog {
  warn(fields: object, message: string): void;
  debug(fields: object, message: string): void;
}

/**
 * A local copy of one kind, kept by list and watch.
 *
 * Guarantees: an object never goes back to an older revision; the replies of this process's own writes count at once
 * (`put`), so a pass never decides on a state older than what it wrote itself.
 * Caveats: it may lag behind the API server without a bound; every write therefore carries its revision.
 */
export class WatchedCache<Raw extends RawObject, View> {
  readonly #options: CacheOptions<Raw, View>;
  readonly #entries = new Map<string, Entry<Raw, View>>();
  /** UID → the revision at which it was seen to be gone, or to have left the selection. */
  readonly #gone = new Map<string, bigint>();
  readonly #listeners: ((change: Change<Raw, View>) => void)[] = [];
  #synced = false;

  constructor(options: CacheOptions<Raw, View>) {
    this.#options = options;
  }

  get(namespace: string, name: string): Entry<Raw, View> | undefined {
    return this.#entries.get(`${namespace}/${name}`);
  }

  entries(): IterableIterator<Entry<Raw, View>> {
    return this.#entries.values();
  }

  get size(): number {
    return this.#entries.size;
  }

  /** The whole collection has been read once. */
  get synced(): boolean {
    return this.#synced;
  }

  onChange(listener: (change: Change<Raw, View>) => void): void {
    this.#listeners.push(listener);
  }

  /** Takes in an object: from the watch, or from the reply to a write of this process. Older revisions are ignored. */
  put(raw: Raw): void {
    const key = keyOf(raw);
    const present = this.#entries.get(key);
    const goneAt = this.#gone.get(raw.metadata.uid);
    if (goneAt !== undefined && revisionOf(raw) <= goneAt) return;
    this.#gone.delete(raw.metadata.uid);
    if (present?.raw.metadata.uid === raw.metadata.uid && !isNewer(raw, present.raw)) return;
    const previous = present?.raw.metadata.uid === raw.metadata.uid ? present : undefined;
    if (present !== undefined && previous === undefined) this.remove(present.raw);
    const entry = { raw, view: this.#options.view(raw, previous?.view) };
    this.#entries.set(key, entry);
    this.#emit({ entry, previous });
  }

  /** Takes in that an object is gone; `raw` is its last state. */
  remove(raw: Raw): void {
    const key = keyOf(raw);
    const present = this.#entries.get(key);
    this.#rememberGone(raw.metadata.uid, revisionOf(raw));
    if (present?.raw.metadata.uid !== raw.metadata.uid) return;
    this.#entries.delete(key);
    const last = isNewer(raw, present.raw) ? { raw, view: this.#options.view(raw, present.view) } : present;
    this.#emit({ entry: undefined, previous: last });
  }

  /** Lists and watches until `signal` aborts; resolves when the first list is in. */
  async run(deps: WatchDeps, signal: AbortSignal): Promise<void> {
    const { path, labelSelector, fieldSelector } = this.#options;
    let retryMs = FIRST_RETRY_MS;
    const list = async (): Promise<KubernetesListObject<KubernetesObject>> => {
      const answer = await deps.client.request<KubernetesListObject<KubernetesObject>>({
        verb: 'GET',
        path: withQuery(path, { labelSelector, fieldSelector }),
        signal,
        timeoutMs: LIST_TIMEOUT_MS,
      });
      retryMs = FIRST_RETRY_MS;
      this.takeList(answer.items as unknown as readonly Raw[], answer.metadata?.resourceVersion);
      return answer;
    };
    const watch = new ListWatch(path, new Watch(deps.config), list, false, labelSelector, fieldSelector);
    for (const verb of ['add', 'update'] as const) {
      watch.on(verb, (object) => {
        retryMs = FIRST_RETRY_MS;
        this.put(object as unknown as Raw);
      });
    }
    watch.on('delete', (object) => this.remove(object as unknown as Raw));
    const start = async (): Promise<void> => {
      try {
        await watch.start();
      } catch (err) {
        restart(err);
      }
    };
    const restart = (err: unknown): void => {
      if (signal.aborted) return;
      deps.log.warn({ err, path, retrySeconds: retryMs / 1000 }, 'Watch failed; trying again');
      setTimeout(() => void start(), retryMs).unref();
      retryMs = Math.min(retryMs * 2, LONGEST_RETRY_MS);
    };
    watch.on('error', restart);
    signal.addEventListener('abort', () => void watch.stop(), { once: true });
    await new Promise<void>((resolve, reject) => {
      this.#onSynced = resolve;
      signal.addEventListener('abort', () => reject(signal.reason), { once: true });
      void start();
    });
  }

  #onSynced: () => void = () => {};

  /** Takes in a list: what it lacks is gone, unless this process has a newer state of it by the reply to a write. */
  takeList(items: readonly Raw[], listRevision: string | undefined): void {
    const listed = new Map(items.map((raw) => [keyOf(raw), raw]));
    for (const [key, { raw }] of this.#entries) {
      const isListed = listed.get(key)?.metadata.uid === raw.metadata.uid;
      const isNewerThanList = listRevision !== undefined && revisionOf(raw) > BigInt(listRevision);
      if (!isListed && !isNewerThanList) this.remove(raw);
    }
    for (const raw of items) this.put(raw);
    this.#synced = true;
    this.#onSynced();
  }

  #rememberGone(uid: string, revision: bigint): void {
    this.#gone.set(uid, revision);
    for (const oldest of this.#gone.keys()) {
      if (this.#gone.size <= GONE_REMEMBERED) break;
      this.#gone.delete(oldest);
    }
  }

  #emit(change: Change<Raw, View>): void {
    for (const listener of this.#listeners) listener(change);
  }
}

const GONE_REMEMBERED = 10_000;
/** A list of many thousand objects on a slow API server takes longer than any other request. */
const LIST_TIMEOUT_MS = 60_000;
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 5_000;

const keyOf = (raw: RawObject): string => `${raw.metadata.namespace ?? ''}/${raw.metadata.name}`;

/** Revisions of one kind are comparable integers (KEP-5504). */
const revisionOf = (raw: RawObject): bigint => BigInt(raw.metadata.resourceVersion);
const isNewer = (a: RawObject, b: RawObject): boolean => revisionOf(a) > revisionOf(b);

export function withQuery(path: string, query: Readonly<Record<string, string | undefined>>): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) params.set(name, value);
  return params.size === 0 ? path : `${path}?${params.toString()}`;
}
