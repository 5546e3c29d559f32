import { nodeView } from '../../../src/core/node.ts';
import { type PodView, podView } from '../../../src/core/pod.ts';
import type { RawPod } from '../../../src/core/raw-pod.ts';
import type { Change } from '../api/store.ts';
import type { World } from '../world/world.ts';

interface Waiting {
  readonly lock: string;
  readonly name: string;
  readonly node: string | undefined;
  /** It could be granted the lock but for its node. */
  isReady: boolean;
  /** Since when it could be granted the lock, by what the API server knows. */
  eligibleSince: number | undefined;
  /** Its place, and when it got it. */
  place: string | undefined;
  placeSince: number;
  lastGrantAt: number | undefined;
  lastEligibleAt: number;
  readonly view: PodView;
  /** Somebody else was preferred to it then, so that it was not next whatever its place. */
  passedOverAt: number;
}

/** Who waits for what since when: a lock is given on in order. */
export class Queues {
  readonly #world: World;
  readonly #waiting = new Map<string, Waiting>();

  constructor(world: World) {
    this.#world = world;
  }

  podChanged({ type, object }: Change): void {
    const { uid } = object.metadata;
    if (type === 'DELETED') return void this.#waiting.delete(uid);
    const now = this.#world.time.now();
    const view = podView(object as unknown as RawPod, 0, undefined);
    const known = this.#waiting.get(uid);
    const place = view.queuedAt?.toString();
    const isReady =
      view.sidecarRunning &&
      !view.deleting &&
      !view.confirmedDead &&
      view.phase !== 'Succeeded' &&
      view.phase !== 'Failed' &&
      place !== undefined;
    const waiting: Waiting = {
      lock: view.lock,
      name: view.name,
      node: view.node,
      isReady,
      eligibleSince: known?.place === place ? known?.eligibleSince : undefined,
      place,
      placeSince: known?.place === place ? (known?.placeSince ?? now) : now,
      lastGrantAt: known?.lastGrantAt,
      lastEligibleAt: known?.lastEligibleAt ?? Number.NEGATIVE_INFINITY,
      view,
      passedOverAt: known?.passedOverAt ?? Number.NEGATIVE_INFINITY,
    };
    this.#waiting.set(uid, waiting);
    this.#judge(waiting);
    this.#prefer();
  }

  nodeChanged(): void {
    for (const waiting of this.#waiting.values()) this.#judge(waiting);
    this.#prefer();
  }

  #prefer(): void {
    const now = this.#world.time.now();
    for (const waiting of this.#waiting.values()) {
      const others = [...this.#waiting.values()].filter((other) => other !== waiting && other.lock === waiting.lock);
      if (others.some((other) => other.eligibleSince !== undefined && this.#isPreferred(other, waiting))) {
        waiting.passedOverAt = now;
      }
    }
  }

  /** May the lock have to go to `a` before `b`, or from `b` to `a`? Pods of one second are told apart by an operator alone. */
  #isPreferred(a: Waiting, b: Waiting, isSure = false): boolean {
    const [cordonedA, cordonedB] = [a, b].map(({ node }) => {
      const present = this.#world.store.get('nodes', undefined, node ?? '');
      return present !== undefined && nodeView(present).cordoned;
    });
    if (a.view.notStarted !== undefined) return false;
    if (cordonedA !== cordonedB) return cordonedB === true;
    const [left, right] = [a.view.workload, b.view.workload];
    if (left === undefined || left.id !== right?.id || left.revision === right.revision) return false;
    return a.view.createdAt > b.view.createdAt || (!isSure && a.view.createdAt === b.view.createdAt);
  }

  /** Somebody who waits although the lock has to go from its holder to him. */
  preferred(lock: string, holderUid: string): string | undefined {
    const holder = this.#waiting.get(holderUid);
    if (holder === undefined || holder.view.deleting) return undefined;
    return [...this.#waiting.values()].find(
      (other) => other.lock === lock && other.eligibleSince !== undefined && this.#isPreferred(other, holder, true),
    )?.name;
  }

  /** Whether anybody but `uid` could have been granted the lock within the last `withinMs`. */
  waited(lock: string, uid: string, withinMs: number): boolean {
    const since = this.#world.time.now() - withinMs;
    return [...this.#waiting].some(
      ([other, { lock: of, eligibleSince, lastEligibleAt }]) =>
        of === lock && other !== uid && (eligibleSince !== undefined || lastEligibleAt >= since),
    );
  }

  #judge(waiting: Waiting): void {
    const node = this.#world.store.get('nodes', undefined, waiting.node ?? '');
    const isEligible = waiting.isReady && node !== undefined && nodeView(node).ready;
    if (waiting.eligibleSince !== undefined) waiting.lastEligibleAt = this.#world.time.now();
    waiting.eligibleSince = isEligible ? (waiting.eligibleSince ?? this.#world.time.now()) : undefined;
  }

  /** Whom a grant to `uid` passed over: somebody who has waited since long before. */
  overtaken(
    lock: string,
    uid: string,
    { slackMs, isMarked }: { readonly slackMs: number; readonly isMarked: boolean },
  ): string | undefined {
    const granted = this.#waiting.get(uid);
    if (granted === undefined) return undefined;
    this.#prefer();
    for (const [other, waiting] of this.#waiting) {
      if (other === uid || waiting.lock !== lock || waiting.eligibleSince === undefined) continue;
      if (waiting.passedOverAt > this.#world.time.now() - slackMs) continue;
      const since = waiting.eligibleSince + slackMs;
      if (since < granted.placeSince) return `${waiting.name} waits longer than ${granted.name}`;
      if (isMarked && granted.lastGrantAt !== undefined && since < granted.lastGrantAt) {
        return `${granted.name} is granted it a second time while ${waiting.name} waits`;
      }
    }
    return undefined;
  }

  noteGrant(uid: string): void {
    const granted = this.#waiting.get(uid);
    if (granted !== undefined) granted.lastGrantAt = this.#world.time.now();
  }

  eligible(lock: string): readonly { readonly uid: string; readonly name: string; readonly since: number }[] {
    return [...this.#waiting].flatMap(([uid, { lock: of, name, eligibleSince }]) =>
      of === lock && eligibleSince !== undefined ? [{ uid, name, since: eligibleSince }] : [],
    );
  }
}
