import type { Now, Observed } from '../../../src/core/observed.ts';
import type { Change } from '../api/store.ts';
import type { NodeWatcher } from '../world/kubelet.ts';
import type { PodOnNode } from '../world/pod-on-node.ts';
import type { World } from '../world/world.ts';
import { checkDecision } from './decisions.ts';
import { LockChecker, podOf } from './locks.ts';
import { Queues } from './queues.ts';
import { checkPromptStop } from './stops.ts';
import type { Violation } from './violation.ts';

/** One pass in this many is decided again on what it leads to. */
const DECISIONS_SKIPPED = 25;

/** Watches everything that happens; the first thing that must not happen ends the run. */
export class Checker implements NodeWatcher {
  violation: Violation | undefined;
  readonly queues: Queues;
  readonly #world: World;
  readonly #locks = new Map<string, LockChecker>();
  #passes = 0;

  constructor(world: World) {
    this.#world = world;
    this.queues = new Queues(world);
  }

  fail(invariant: string, text: string): void {
    if (this.violation !== undefined) return;
    this.violation = { invariant, atMs: this.#world.time.now(), text };
    this.note('check', () => `VIOLATION of ${invariant}: ${text}`);
  }

  note(actor: string, text: () => string): void {
    this.#world.trace.note(actor, text);
  }

  changed(change: Change): void {
    const { name } = change.object.metadata;
    switch (change.resource) {
      case 'leases':
        if (name.startsWith('kilit.')) this.lock(name.slice('kilit.'.length)).leaseChanged(change);
        return;
      case 'distributedlocks':
        return this.lock(name).lockChanged(change);
      case 'pods':
        this.queues.podChanged(change);
        return this.lock(change.object.metadata.labels?.['kilit.dev/lock'] ?? '').podChanged(change);
      case 'nodes':
        return this.queues.nodeChanged();
      default:
    }
  }

  lock(name: string): LockChecker {
    let lock = this.#locks.get(name);
    if (lock === undefined) {
      lock = new LockChecker(this.#world, name, this);
      this.#locks.set(name, lock);
    }
    return lock;
  }

  programCreated(pod: PodOnNode, token: bigint | undefined): void {
    this.note(`kubelet of ${pod.plan.name}`, () => `creates a program with token ${token}`);
    if (token !== undefined) this.lock(pod.plan.lock).programCreated(pod, token);
  }

  sidecarEnded(pod: PodOnNode, code: number, explanation: string): void {
    this.note(`sidecar ${pod.plan.name}`, () => `ended with ${code}: ${explanation}`);
    checkPromptStop(this.#world, pod);
  }

  stateLost({ plan }: PodOnNode): void {
    this.note(`node of ${plan.name}`, () => 'the runtime lost its state');
    this.lock(plan.lock).withOrphans.add(podOf(`${plan.name}/${plan.uid.slice(-4)}`));
  }

  passed(key: string, observed: Observed, now: Now): void {
    this.#passes += 1;
    if (this.#passes % DECISIONS_SKIPPED !== 0) return;
    const fault = checkDecision(observed, now);
    if (fault !== undefined) this.fail('decide comes to rest', `${key}: ${fault}`);
  }

  /** At the end of a run. */
  finish(): void {
    for (const lock of this.#locks.values()) lock.checkHistory();
  }
}
