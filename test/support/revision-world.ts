/** One lock in a cluster whose etcd is saved and restored, and an operator that goes on running. */
import fc from 'fast-check';
import { decide } from '../../src/core/decide.ts';
import type { LeaseView } from '../../src/core/lease.ts';
import type { LockView } from '../../src/core/lock.ts';
import type { GrantGate, RevisionFall } from '../../src/core/observed.ts';
import { aLease, aLock, aPod, at, observedLock } from './builders.ts';

export type Step =
  | { readonly kind: 'grant' | 'renew' | 'release' | 'writeStatus' | 'newLease' | 'newLock' | 'save' }
  | { readonly kind: 'others' | 'raise' | 'restore'; readonly by: number };

interface State {
  readonly revision: bigint;
  readonly base: bigint;
  readonly lease: LeaseView;
  readonly held: boolean;
  readonly status: LockView['status'];
}

export class RevisionWorld {
  /** Of all grants, over all restores. */
  readonly tokens: bigint[] = [];
  restores = 0;
  #state: State = {
    revision: 100n,
    base: 0n,
    lease: aLease({ resourceVersion: '100', token: 0n }),
    held: false,
    status: {},
  };
  #saved: State = this.#state;
  #formerStatus: LockView['status'] = {};
  #highestToken = 0n;
  #fall: RevisionFall | undefined;

  static steps(kind: 'calm' | 'restored'): fc.Arbitrary<readonly Step[]> {
    const plain = fc.constantFrom<Step[]>(
      ...(
        [
          'grant',
          'grant',
          'grant',
          'renew',
          'release',
          'release',
          'writeStatus',
          'newLease',
          'newLock',
          'save',
        ] as const
      ).map((kind): Step => ({ kind })),
    );
    const counted = fc.record({
      kind: fc.constantFrom(
        ...(kind === 'calm' ? (['others', 'raise'] as const) : (['others', 'raise', 'restore', 'restore'] as const)),
      ),
      by: fc.constantFrom(0, 1, 3, 50, 20_000, 1_000_000_000),
    });
    return fc.array(fc.oneof({ weight: 3, arbitrary: plain }, { weight: 1, arbitrary: counted }), { maxLength: 40 });
  }

  lease = (): LeaseView => this.#state.lease;

  gate(): GrantGate {
    const { revision, base } = this.#state;
    return {
      open: true,
      base,
      revision,
      highestToken: this.#highestToken,
      ...(this.#fall !== undefined && { fall: this.#fall }),
    };
  }

  /** The lock with its present status, and as a cache shows it that lags behind. */
  locksAsSeen(): readonly LockView[] {
    return [aLock({ status: this.#state.status }), aLock({ status: this.#formerStatus })];
  }

  take(step: Step): void {
    const { revision, lease, held } = this.#state;
    switch (step.kind) {
      case 'grant':
        return this.#grant();
      case 'renew':
        return held ? this.#write(lease) : undefined;
      case 'release':
        return this.#write(lease, { held: false });
      case 'writeStatus':
        this.#formerStatus = this.#state.status;
        this.#state = {
          ...this.#state,
          status: { fencingToken: (lease.token ?? 0n).toString() },
          revision: revision + 1n,
        };
        return undefined;
      case 'newLease':
        return this.#write({ ...lease, token: 0n }, { held: false });
      case 'newLock':
        this.#formerStatus = {};
        return this.#write({ ...lease, token: 0n }, { held: false, status: {} });
      case 'save':
        this.#saved = this.#state;
        return undefined;
      case 'others':
        this.#state = { ...this.#state, revision: revision + BigInt(step.by) };
        return undefined;
      case 'raise':
        this.#state = { ...this.#state, base: this.#state.base + BigInt(step.by), revision: revision + 1n };
        return undefined;
      case 'restore':
        return this.#restore(BigInt(step.by));
      default:
        throw new Error(`Unknown step ${JSON.stringify(step)}`);
    }
  }

  /** An administrator does what the condition asks for. */
  mend(): void {
    this.take({ kind: 'release' });
    const ready = decide(this.#observed(), at(600_000)).actions.flatMap((action) =>
      action.kind === 'WriteStatus' ? (action.status.conditions ?? []) : [],
    );
    const [, base] = / to (\d+) \(annotation/.exec(ready.map(({ message }) => message).join(' ')) ?? [];
    if (base !== undefined) this.#state = { ...this.#state, base: BigInt(base) };
  }

  #observed() {
    const { lease, status } = this.#state;
    return observedLock({
      lock: aLock({ status }),
      // The wait for an earlier holder is over.
      lease: { ...lease, observedAt: 0 },
      pods: [aPod('a', { queuedAt: 1n })],
      gate: this.gate(),
    });
  }

  #grant(): void {
    if (this.#state.held) return;
    for (const action of decide(this.#observed(), at(600_000)).actions) {
      if (action.kind === 'RefreshLease') {
        this.#write(this.#state.lease);
        return this.#grant();
      }
      if (action.kind !== 'Grant') continue;
      this.tokens.push(action.token);
      if (action.token > this.#highestToken) this.#highestToken = action.token;
      this.#write({ ...this.#state.lease, token: action.token }, { held: true });
    }
  }

  #write(lease: LeaseView, change: Partial<State> = {}): void {
    const revision = this.#state.revision + 1n;
    this.#state = { ...this.#state, ...change, lease: { ...lease, resourceVersion: revision.toString() }, revision };
  }

  /** The operator lists again, and compares. With a bump only the revision of the cluster jumps. */
  #restore(bump: bigint): void {
    this.restores += 1;
    const before = this.#state;
    this.#state = { ...this.#saved, revision: this.#saved.revision + bump };
    this.#formerStatus = this.#state.status;
    const showsOlder = BigInt(this.#state.lease.resourceVersion) < BigInt(before.lease.resourceVersion);
    if (this.#state.revision >= before.revision && !showsOlder) return;
    const base = before.base > this.#state.base ? before.base : this.#state.base;
    const issued = before.revision + base;
    this.#fall = {
      from: before.revision,
      to: this.#state.revision,
      issued: this.#fall === undefined || issued > this.#fall.issued ? issued : this.#fall.issued,
    };
  }
}
