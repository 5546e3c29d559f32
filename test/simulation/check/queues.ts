import { nodeView } from '../../../src/core/node.ts';
import { podView } from '../../../src/core/pod.ts';
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
    };
    this.#waiting.set(uid, waiting);
    this.#judge(waiting);
  }

  nodeChanged(): void {
    for (const waiting of this.#waiting.values()) this.#judge(waiting);
  }

  #judge(waiting: Waiting): void {
    const node = this.#world.store.get('nodes', undefined, waiting.node ?? '');
    const isEligible = waiting.isReady && node !== undefined && nodeView(node).ready;
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
    for (const [other, waiting] of this.#waiting) {
      if (other === uid || waiting.lock !== lock || waiting.eligibleSince === undefined) continue;
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
