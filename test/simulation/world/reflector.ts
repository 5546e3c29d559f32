import type { Obj, Resource } from '../api/objects.ts';
import { type List, list, routeOf } from '../api/routes.ts';
import type { Change, Store } from '../api/store.ts';
import type { Proc } from './machine.ts';
import type { Link } from './network.ts';
import type { Random } from './random.ts';

export interface ReflectorOptions {
  readonly proc: Proc;
  readonly link: Link;
  readonly store: Store;
  readonly random: Random;
  readonly resource: Resource;
  readonly path: string;
  /** Leaves out what the selector leaves out. */
  readonly wants?: (object: Obj) => boolean;
  readonly listed: (items: readonly Obj[], revision: string) => void;
  readonly changed: (change: Change) => void;
  /** May the server answer a list from a cache that is behind? */
  readonly staleLists: boolean;
}

const LIST_TIMEOUT_MS = 60_000;
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 5_000;

/**
 * List and watch, as a client library does it: events come late and in order, some twice; a watch that breaks goes on
 * from the last revision, or lists again when the server does not know that any more.
 */
export class Reflector {
  readonly #options: ReflectorOptions;
  #revision = 0;
  #retryMs = FIRST_RETRY_MS;
  #watch: { stop: () => void; lastAt: number } | undefined;

  constructor(options: ReflectorOptions) {
    this.#options = options;
  }

  start(): void {
    const { proc, link, store, path, resource, random, staleLists, wants } = this.#options;
    const agoMs = staleLists && random.chance(0.2) ? random.between(0, 3_000) : 0;
    link.call(
      {
        proc,
        what: `LIST ${resource}`,
        isWrite: false,
        timeoutMs: LIST_TIMEOUT_MS,
        run: (): List => list(store, routeOf(path), agoMs),
      },
      (outcome) => {
        if (outcome.kind !== 'ok') return this.#retry();
        this.#retryMs = FIRST_RETRY_MS;
        const { items, metadata } = outcome.value;
        this.#options.listed(wants === undefined ? items : items.filter(wants), metadata.resourceVersion);
        this.#follow(Number(metadata.resourceVersion));
      },
    );
  }

  /** Breaks the watch; `expired`: the server has forgotten the revision (410). */
  break(expired: boolean): void {
    if (this.#watch === undefined) return;
    this.#stopWatch();
    if (expired) this.start();
    else this.#reconnect();
  }

  #retry(): void {
    this.#options.proc.setTimer(this.#retryMs, () => this.start());
    this.#retryMs = Math.min(this.#retryMs * 2, LONGEST_RETRY_MS);
  }

  #reconnect(): void {
    const { proc, link, random } = this.#options;
    proc.setTimer(random.between(50, 1_500), () => {
      if (link.has('cut')) this.#reconnect();
      else this.#follow(this.#revision);
    });
  }

  #follow(from: number): void {
    this.#revision = from;
    const { proc, link, store, resource, random, wants, changed } = this.#options;
    const time = proc.machine.time;
    const watch = { stop: () => {}, lastAt: 0 };
    this.#stopWatch();
    this.#watch = watch;
    const take = (change: Change) => {
      if (wants !== undefined && !wants(change.object)) return;
      watch.lastAt = Math.max(watch.lastAt + 0.001, time.now() + link.lagMs());
      const times = random.chance(0.02) ? 2 : 1;
      time.at(watch.lastAt, () => {
        if (this.#watch !== watch) return;
        if (link.has('cut')) return this.break(random.chance(0.3));
        proc.deliver(() => {
          if (this.#watch !== watch) return;
          this.#revision = Math.max(this.#revision, change.revision);
          for (let i = 0; i < times; i += 1) changed(change);
        });
      });
    };
    for (const change of store.changesSince(resource, from)) take(change);
    watch.stop = store.watch(resource, (change) => {
      if (proc.alive) take(change);
      else watch.stop();
    });
  }

  #stopWatch(): void {
    this.#watch?.stop();
    this.#watch = undefined;
  }
}
