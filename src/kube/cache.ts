import { follow, type Selection, type WatchDeps } from './follow.ts';

export { type WatchDeps, withQuery } from './follow.ts';

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

/** What was known when a list was asked for: whatever the API server answers later must be at least as new. */
export interface ListMoment {
  readonly highest: bigint;
  readonly puts: number;
}

/** The API server has gone back to an earlier state: by the restore of a backup of etcd, or to another cluster. */
export interface RevisionsWentBack {
  /** The highest revision seen before. */
  readonly from: bigint;
  /** The revision of the list that shows it; above `from` if the cluster has grown past it again meanwhile. */
  readonly to: bigint;
}

export interface CacheOptions<Raw, View> extends Selection {
  readonly view: (raw: Raw, previous: View | undefined) => View;
}

/**
 * A local copy of one kind, kept by list and watch.
 *
 * Guarantees: an object never goes back to an older revision, unless a list proves that the API server did; the replies
 * of this process's own writes count at once (`put`), so a pass never decides on a state older than what it wrote itself.
 * Caveats: it may lag behind the API server without a bound; every write therefore carries its revision.
 */
export class WatchedCache<Raw extends RawObject, View> {
  readonly #options: CacheOptions<Raw, View>;
  readonly #entries = new Map<string, Entry<Raw, View>>();
  /** UID → the revision at which it was seen to be gone, or to have left the selection, and after how many puts. */
  readonly #gone = new Map<string, { readonly revision: bigint; readonly puts: number }>();
  readonly #listeners: ((change: Change<Raw, View>) => void)[] = [];
  readonly #backListeners: ((went: RevisionsWentBack) => void)[] = [];
  #synced = false;
  #highest = 0n;
  #puts = 0;
  /** Key → the number of the put that brought the entry. */
  readonly #putAt = new Map<string, number>();

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

  /** Told before what an earlier state of the API server shows is taken in. */
  onWentBack(listener: (went: RevisionsWentBack) => void): void {
    this.#backListeners.push(listener);
  }

  /** The highest revision seen of this kind: the API server has reached it. */
  get highest(): bigint {
    return this.#highest;
  }

  /** Takes in an object: from the watch, or from the reply to a write of this process. Older revisions are ignored. */
  put(raw: Raw): void {
    const key = keyOf(raw);
    const present = this.#entries.get(key);
    const gone = this.#gone.get(raw.metadata.uid);
    if (gone !== undefined && revisionOf(raw) <= gone.revision) return;
    // Also if it is another object of this name: the later one was made after the earlier one had gone.
    if (present !== undefined && !isNewer(raw, present.raw)) return;
    this.#set(raw);
  }

  #set(raw: Raw): void {
    const key = keyOf(raw);
    const present = this.#entries.get(key);
    this.#gone.delete(raw.metadata.uid);
    const previous = present?.raw.metadata.uid === raw.metadata.uid ? present : undefined;
    if (present !== undefined && previous === undefined) this.remove(present.raw);
    const entry = { raw, view: this.#options.view(raw, previous?.view) };
    this.#entries.set(key, entry);
    this.#saw(revisionOf(raw));
    this.#putAt.set(key, this.#puts);
    this.#emit({ entry, previous });
  }

  /** Takes in that an object is gone; `raw` is its last state. */
  remove(raw: Raw): void {
    const key = keyOf(raw);
    const present = this.#entries.get(key);
    this.#rememberGone(raw.metadata.uid, revisionOf(raw));
    if (present?.raw.metadata.uid !== raw.metadata.uid) return;
    this.#entries.delete(key);
    this.#putAt.delete(key);
    const last = isNewer(raw, present.raw) ? { raw, view: this.#options.view(raw, present.view) } : present;
    this.#emit({ entry: undefined, previous: last });
  }

  /** Lists and watches until `signal` aborts; resolves when the first list is in. */
  run(deps: WatchDeps, signal: AbortSignal): Promise<void> {
    return follow<Raw>(
      {
        ...this.#options,
        beforeList: () => this.beforeList(),
        takeList: (...list) => this.takeList(...list),
        put: (raw) => this.put(raw),
        remove: (raw) => this.remove(raw),
      },
      deps,
      signal,
    );
  }

  /** Call it before the list is asked for, and give it to `takeList`. */
  beforeList(): ListMoment {
    return { highest: this.#highest, puts: this.#puts };
  }

  /**
   * Takes in a list: what it lacks is gone, unless this process has a newer state of it by the reply to a write.
   *
   * A list that shows something older than what was known when it was asked for (`asked`) proves that the API server went
   * back to an earlier state. Then all that was known is out of date, and the list is taken as it is.
   * Assumes: a list is a consistent read (no `resourceVersion` in the request).
   */
  takeList(items: readonly Raw[], listRevision: string | undefined, asked: ListMoment = NOTHING_KNOWN): void {
    const to = listRevision === undefined ? this.#highest : BigInt(listRevision);
    const wentBack = to < asked.highest || items.some((raw) => this.#wasNewer(raw, asked));
    if (wentBack) {
      const went = { from: this.#highest, to };
      this.#highest = 0n;
      this.#gone.clear();
      for (const listener of this.#backListeners) listener(went);
    }
    const listed = new Map(items.map((raw) => [keyOf(raw), raw]));
    for (const [key, { raw }] of this.#entries) {
      const isListed = listed.get(key)?.metadata.uid === raw.metadata.uid;
      const isNewerThanList = listRevision !== undefined && revisionOf(raw) > BigInt(listRevision);
      if (!isListed && (wentBack || !isNewerThanList)) this.remove(raw);
    }
    if (wentBack) {
      // Those were deleted in a time that is no more; the same objects may come again.
      this.#gone.clear();
      this.#highest = 0n;
    }
    for (const raw of items) {
      if (!wentBack) this.put(raw);
      else if (!isSame(raw, this.#entries.get(keyOf(raw))?.raw)) this.#set(raw);
    }
    this.#saw(to);
    this.#synced = true;
  }

  /** Was a newer state of this object, or its end, known when the list was asked for? */
  #wasNewer(raw: Raw, asked: ListMoment): boolean {
    const gone = this.#gone.get(raw.metadata.uid);
    if (gone !== undefined && gone.puts <= asked.puts && revisionOf(raw) <= gone.revision) return true;
    const present = this.#entries.get(keyOf(raw))?.raw;
    const putAt = this.#putAt.get(keyOf(raw)) ?? 0;
    return present?.metadata.uid === raw.metadata.uid && putAt <= asked.puts && isNewer(present, raw);
  }

  #saw(revision: bigint): void {
    this.#puts += 1;
    if (revision > this.#highest) this.#highest = revision;
  }

  #rememberGone(uid: string, revision: bigint): void {
    this.#saw(revision);
    this.#gone.set(uid, { revision, puts: this.#puts });
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
const NOTHING_KNOWN: ListMoment = { highest: 0n, puts: -1 };

const keyOf = (raw: RawObject): string => `${raw.metadata.namespace ?? ''}/${raw.metadata.name}`;

/** Revisions of one kind are comparable integers (KEP-5504). */
const revisionOf = (raw: RawObject): bigint => BigInt(raw.metadata.resourceVersion);
const isNewer = (a: RawObject, b: RawObject): boolean => revisionOf(a) > revisionOf(b);
const isSame = (a: RawObject, b: RawObject | undefined): boolean =>
  a.metadata.uid === b?.metadata.uid && a.metadata.resourceVersion === b.metadata.resourceVersion;
