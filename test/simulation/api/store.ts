import { sameJson } from '../../../src/core/json.ts';
import type { VirtualTime } from '../world/time.ts';
import { keyOf, type Meta, type Obj, RESOURCES, Refusal, type Resource, type Who } from './objects.ts';
import type { AdmissionRequest } from './policies.ts';

export interface Change {
  readonly revision: number;
  readonly at: number;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly resource: Resource;
  readonly object: Obj;
  readonly old: Obj | undefined;
  readonly who: Who;
}

interface Table {
  readonly objects: Map<string, Obj>;
  /** All changes; the simulation is short. */
  readonly log: Change[];
  readonly watchers: Set<(change: Change) => void>;
}

export type Draft = Omit<Obj, 'metadata'> & { readonly metadata: Partial<Meta> & { readonly name: string } };

interface Preconditions {
  readonly uid?: string | undefined;
  readonly resourceVersion?: string | undefined;
}

/**
 * The API server's storage: one revision counter, optimistic concurrency, finalizers, a log for watches.
 *
 * Policies run against exactly the revision that is replaced, as ValidatingAdmissionPolicies do.
 */
export class Store {
  readonly #time: VirtualTime;
  readonly #admit: (request: AdmissionRequest) => void;
  readonly #operatorNamespace: string;
  readonly #tables = new Map<Resource, Table>();
  readonly #listeners: ((change: Change) => void)[] = [];
  #revision = 1000;
  #uids = 0;

  constructor(options: {
    readonly time: VirtualTime;
    readonly admit: (request: AdmissionRequest) => void;
    readonly operatorNamespace: string;
  }) {
    this.#time = options.time;
    this.#admit = options.admit;
    this.#operatorNamespace = options.operatorNamespace;
    for (const resource of RESOURCES) {
      this.#tables.set(resource, { objects: new Map(), log: [], watchers: new Set() });
    }
  }

  get revision(): number {
    return this.#revision;
  }

  /** Called with each change, before anybody else hears of it. */
  onChange(listener: (change: Change) => void): void {
    this.#listeners.push(listener);
  }

  /** Called with each write of one process, until it is stopped. */
  onWriteOf(name: string, listener: () => void): () => void {
    const own = ({ who }: Change) => {
      if (who.name === name) listener();
    };
    this.#listeners.push(own);
    return () => void this.#listeners.splice(this.#listeners.indexOf(own), 1);
  }

  get(resource: Resource, namespace: string | undefined, name: string): Obj | undefined {
    return this.#table(resource).objects.get(keyOf(namespace, name));
  }

  list(resource: Resource): IterableIterator<Obj> {
    return this.#table(resource).objects.values();
  }

  /** The collection as it was `agoMs` ago, and its revision. */
  listOf(resource: Resource, agoMs: number): { readonly items: readonly Obj[]; readonly revision: number } {
    const { objects, log } = this.#table(resource);
    const since = this.#time.now() - agoMs;
    if (agoMs <= 0 || (log.at(-1)?.at ?? 0) <= since) return { items: [...objects.values()], revision: this.#revision };
    const past = new Map(objects);
    let revision = this.#revision;
    for (let i = log.length - 1; i >= 0; i -= 1) {
      const change = log[i] as Change;
      if (change.at <= since) break;
      revision = change.revision - 1;
      const key = keyOf(change.object.metadata.namespace, change.object.metadata.name);
      if (change.old === undefined) past.delete(key);
      else past.set(key, change.old);
    }
    return { items: [...past.values()], revision };
  }

  /** Changes after `revision`, in order. */
  changesSince(resource: Resource, revision: number): readonly Change[] {
    const { log } = this.#table(resource);
    let from = log.length;
    while (from > 0 && (log[from - 1] as Change).revision > revision) from -= 1;
    return log.slice(from);
  }

  watch(resource: Resource, watcher: (change: Change) => void): () => void {
    const { watchers } = this.#table(resource);
    watchers.add(watcher);
    return () => watchers.delete(watcher);
  }

  create(resource: Resource, draft: Draft, who: Who, options: { readonly dryRun?: boolean } = {}): Obj {
    const key = keyOf(draft.metadata.namespace, draft.metadata.name);
    if (this.#table(resource).objects.has(key)) throw new Refusal(409, 'AlreadyExists', `${key} already exists`);
    const object: Obj = {
      ...draft,
      metadata: {
        ...draft.metadata,
        uid: this.#newUid(),
        generation: 1,
        resourceVersion: '0',
        creationTimestamp: this.timeText(),
      },
    };
    this.#check({ operation: 'CREATE', resource, subresource: '', object, old: undefined, who });
    if (options.dryRun === true) return object;
    return this.#commit('ADDED', resource, object, undefined, who);
  }

  /** @throws Refusal 404, or 409 if the preconditions do not hold. */
  update(
    resource: Resource,
    target: { readonly namespace: string | undefined; readonly name: string; readonly subresource?: '' | 'status' },
    change: (old: Obj) => Draft,
    options: Preconditions & { readonly who: Who },
  ): Obj {
    const old = this.#present(resource, target, options);
    const draft = change(old);
    const { subresource = '' } = target;
    const specChanged = subresource === '' && resource === 'distributedlocks' && !sameJson(draft.spec, old.spec);
    const object: Obj = {
      ...draft,
      ...(subresource === '' && resource === 'distributedlocks' && { status: old.status ?? {} }),
      metadata: {
        ...draft.metadata,
        uid: old.metadata.uid,
        generation: (old.metadata.generation ?? 1) + (specChanged ? 1 : 0),
        resourceVersion: old.metadata.resourceVersion,
        ...(old.metadata.deletionTimestamp !== undefined && { deletionTimestamp: old.metadata.deletionTimestamp }),
        ...(old.metadata.deletionGracePeriodSeconds !== undefined && {
          deletionGracePeriodSeconds: old.metadata.deletionGracePeriodSeconds,
        }),
      },
    };
    this.#check({ operation: 'UPDATE', resource, subresource, object, old, who: options.who });
    if (sameJson(object, old)) return old;
    const isGone = isDeleted(object, resource) && !hasFinalizers(object);
    return this.#commit(isGone ? 'DELETED' : 'MODIFIED', resource, object, old, options.who);
  }

  /** Deletes now, or marks for deletion what has finalizers or, of Pods, a grace period. */
  delete(
    resource: Resource,
    target: { readonly namespace: string | undefined; readonly name: string },
    options: Preconditions & { readonly who: Who; readonly graceSeconds?: number },
  ): Obj {
    const old = this.#present(resource, target, options);
    this.#check({ operation: 'DELETE', resource, subresource: '', object: undefined, old, who: options.who });
    const graceSeconds = resource === 'pods' ? (options.graceSeconds ?? 0) : 0;
    const present = old.metadata.deletionGracePeriodSeconds ?? Number.POSITIVE_INFINITY;
    if (graceSeconds > 0 || hasFinalizers(old)) {
      if (old.metadata.deletionTimestamp !== undefined && graceSeconds >= present) return old;
      const marked: Obj = {
        ...old,
        metadata: {
          ...old.metadata,
          deletionTimestamp: old.metadata.deletionTimestamp ?? this.timeText(),
          ...(resource === 'pods' && { deletionGracePeriodSeconds: Math.min(graceSeconds, present) }),
        },
      };
      return this.#commit('MODIFIED', resource, marked, old, options.who);
    }
    return this.#commit('DELETED', resource, old, old, options.who);
  }

  timeText(): string {
    return `${new Date(1_767_225_600_000 + Math.floor(this.#time.now() / 1000) * 1000).toISOString().slice(0, 19)}Z`;
  }

  #present(
    resource: Resource,
    target: { readonly namespace: string | undefined; readonly name: string },
    { uid, resourceVersion }: Preconditions,
  ): Obj {
    const old = this.get(resource, target.namespace, target.name);
    if (old === undefined) throw new Refusal(404, 'NotFound', `${resource} ${target.name} not found`);
    const isOther = uid !== undefined && uid !== old.metadata.uid;
    if (isOther || (resourceVersion !== undefined && resourceVersion !== old.metadata.resourceVersion)) {
      throw new Refusal(409, 'Conflict', `${resource} ${target.name}: the object has been modified`);
    }
    return old;
  }

  #check(request: Omit<AdmissionRequest, 'params'>): void {
    this.#admit({ ...request, params: this.get('namespaces', undefined, this.#operatorNamespace) });
  }

  #commit(type: Change['type'], resource: Resource, object: Obj, old: Obj | undefined, who: Who): Obj {
    this.#revision += 1;
    const stored: Obj = { ...object, metadata: { ...object.metadata, resourceVersion: String(this.#revision) } };
    const table = this.#table(resource);
    const key = keyOf(stored.metadata.namespace, stored.metadata.name);
    if (type === 'DELETED') table.objects.delete(key);
    else table.objects.set(key, stored);
    const change: Change = { revision: this.#revision, at: this.#time.now(), type, resource, object: stored, old, who };
    table.log.push(change);
    for (const listener of this.#listeners.slice()) listener(change);
    for (const watcher of table.watchers) watcher(change);
    return stored;
  }

  #table(resource: Resource): Table {
    return this.#tables.get(resource) as Table;
  }

  #newUid(): string {
    this.#uids += 1;
    return `00000000-0000-4000-8000-${this.#uids.toString(16).padStart(12, '0')}`;
  }
}

/** A Pod goes only when its grace period is over, which its kubelet says by a deletion without one. */
const isDeleted = ({ metadata }: Obj, resource: Resource): boolean =>
  metadata.deletionTimestamp !== undefined && (resource !== 'pods' || metadata.deletionGracePeriodSeconds === 0);

const hasFinalizers = (object: Obj): boolean => (object.metadata.finalizers?.length ?? 0) > 0;
