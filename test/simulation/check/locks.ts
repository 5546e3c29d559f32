import {
  ON_RENEWAL_FAILURE_ANNOTATION,
  TAKEOVER_ANNOTATION,
  TOKEN_ANNOTATION,
  YIELD_ANNOTATION,
} from '../../../src/api/names.ts';
import type { RawLease } from '../../../src/core/lease.ts';
import type { Change } from '../api/store.ts';
import type { PodOnNode } from '../world/pod-on-node.ts';
import type { World } from '../world/world.ts';
import { excuse, isHolding } from './stops.ts';

interface GrantRecord {
  readonly uid: string;
  readonly atMs: number;
  /** The life of the Pod that confirmed it. */
  confirmedBy: string | undefined;
  /** By `onRenewalFailure: ContinueFenced`: its programs may go on while another holds. */
  readonly continues: boolean;
}

interface Failing {
  fail(invariant: string, text: string): void;
  readonly queues: {
    overtaken(lock: string, uid: string, rule: { slackMs: number; isMarked: boolean }): string | undefined;
    waited(lock: string, uid: string, withinMs: number): boolean;
    noteGrant(uid: string): void;
  };
}

/** What must hold of one lock, by name: it goes on when the lock is deleted and created again. */
export class LockChecker {
  readonly grants = new Map<bigint, GrantRecord>();
  /** Pods whose runtime lost its state: their lives may overlap. */
  readonly withOrphans = new Set<string>();
  readonly #world: World;
  readonly #lock: string;
  readonly #check: Failing;
  readonly #forgotten = new Set<string>();
  #highest = 0n;

  constructor(world: World, lock: string, check: Failing) {
    this.#world = world;
    this.#lock = lock;
    this.#check = check;
  }

  leaseChanged({ type, object, old, who }: Change): void {
    if (type === 'DELETED') return;
    const [lease, before] = [readLease(object as unknown as RawLease), readLease(old as unknown as RawLease)];
    if (type === 'ADDED') {
      if (lease.token !== 0n || lease.holder !== '') this.#fail('a Lease is created free, with token 0', who.name);
      return;
    }
    const granted = lease.holder !== '' && (lease.holder !== before.holder || lease.acquired !== before.acquired);
    if (!granted && lease.token !== before.token) {
      return this.#fail('no write changes a token without a grant', `${before.token} → ${lease.token} by ${who.name}`);
    }
    if (granted) return this.#granted(lease, before, who);
    if (lease.yieldAsked !== before.yieldAsked) return this.#yieldAsked(lease, before);
    if (before.holder !== '' && lease.holder === '') return this.#ended(before, who);
    if (lease.renewed === before.renewed) return;
    if (who.podUid === undefined || who.podUid !== lease.uid) {
      return this.#fail('only the holder renews', `renewed by ${who.name}, held by ${lease.holder}`);
    }
    const record = this.grants.get(lease.token ?? 0n);
    if (record !== undefined) record.confirmedBy ??= this.#world.podOnNode(lease.uid)?.pod.lifeName ?? '';
  }

  #granted(lease: LeaseFacts, before: LeaseFacts, who: Change['who']): void {
    if (who.kind !== 'operator') return this.#fail('only the operator grants', `to ${lease.holder} by ${who.name}`);
    const token = lease.token ?? 0n;
    if (token <= this.#highest) {
      return this.#fail('tokens strictly grow', `${token} after ${this.#highest}`);
    }
    if (isBroken(lease)) this.#checkBroken(before);
    else this.#checkStopped(before, token);
    this.#highest = token;
    const { uid, continues } = lease;
    this.grants.set(token, { uid, atMs: this.#world.time.now(), confirmedBy: undefined, continues });
    if (isBroken(lease)) return;
    const slackMs = this.#hasSlowSight() ? 60_000 : 8_000;
    // A holder whose mark could not be written keeps its place.
    const isMarked = !this.#hasSlowSight() && !this.#world.scenario.faults.some(({ kind }) => kind === 'deleteLock');
    const overtaken = this.#check.queues.overtaken(this.#lock, lease.uid, { slackMs, isMarked });
    if (overtaken !== undefined) this.#fail('waiters are served in order', overtaken);
    this.#check.queues.noteGrant(lease.uid);
  }

  /** A holder is taken away from the Lease: by itself once its programs are dead, or by the operator. */
  #ended(before: LeaseFacts, who: Change['who']): void {
    if (who.kind === 'operator') return this.#checkStopped(before, undefined);
    if (who.podUid !== before.uid) return this.#fail('only the holder releases', `${before.holder} by ${who.name}`);
    const found = this.#world.podOnNode(before.uid);
    // After its runtime lost its state a Pod may have two sidecars, which act for one another.
    if (found === undefined || found.pod.statesLost > 0) return;
    for (const program of found.pod.livingPrograms()) {
      if (program.token === before.token && !found.pod.orphans.has(program)) {
        this.#fail('a holder releases only when its programs are dead', `${program.life} lives with ${before.token}`);
      }
    }
  }

  /** An administrator broke the grant: its programs may be alive, and the status says already who did it. */
  #checkBroken({ token, holder }: LeaseFacts): void {
    const status = (this.#world.lockOf(this.#lock)?.status ?? {}) as {
      readonly lastBreak?: { readonly token: string };
    };
    if (status.lastBreak?.token !== String(token)) {
      this.#fail('who broke a grant stands in the status first', `${holder} with ${token}`);
    }
  }

  /** Once for a grant, of one that holds, and only if somebody could be granted the lock in its stead. */
  #yieldAsked({ yieldAsked, holder, uid, acquired, renewed }: LeaseFacts, before: LeaseFacts): void {
    const text = `${holder} is asked to yield (${yieldAsked})`;
    if (before.yieldAsked !== undefined) this.#fail(YIELD, `${text} after ${before.yieldAsked}`);
    if (acquired === renewed || isBroken({ holder })) this.#fail(YIELD, `${text}, which has not confirmed`);
    if (yieldAsked === 'Requested' || this.#hasSlowSight()) return;
    if (!this.#check.queues.waited(this.#lock, uid, 5_000)) this.#fail(YIELD, `${text}, and nobody waits`);
  }

  /** The right passes on: every program with an older token has been stopped, but for the stated exceptions. */
  #checkStopped(before: LeaseFacts, next: bigint | undefined): void {
    const now = this.#world.time.now();
    const fromMs = now - (before.lapseSeconds * 1.2 + 5) * 1000;
    for (const found of this.#world.podsOnNodes()) {
      if (found.pod.plan.lock !== this.#lock) continue;
      for (const program of found.pod.livingPrograms()) {
        const { token } = program;
        if (token === undefined || token === next || !this.grants.has(token)) continue;
        if (this.#forgotten.has(found.pod.plan.uid) || this.grants.get(token)?.continues === true) continue;
        if (before.isPodGone && before.token === token && found.pod.statesLost === 0) {
          return this.#fail('under PodGone a grant ends with its Pod', `${program.life} lives with ${token}`);
        }
        // A kubelet that is restarted gives a terminating Pod its grace period once more.
        const sinceMs = found.pod.isTerminating ? fromMs - LONGEST_GRACE_MS : fromMs;
        if (excuse(program, found, sinceMs) !== undefined) continue;
        const text = `${program.life} lives with ${token} while it passes on${next === undefined ? '' : ` as ${next}`}`;
        this.#fail(isHolding(program) ? TOLD_TO_STOP : STOPPED, text);
      }
    }
  }

  programCreated(pod: PodOnNode, token: bigint): void {
    const record = this.grants.get(token);
    const text = `${pod.lifeName} starts a program with ${token}`;
    if (record?.uid !== pod.plan.uid) return this.#fail('no program starts without holding', text);
    // Orphans of a lost runtime share the Pod's volume too.
    if (pod.statesLost > 0) return;
    if (record.confirmedBy !== pod.lifeName) {
      return this.#fail(
        'no program starts without holding',
        `${text}, which ${record.confirmedBy ?? 'nobody'} confirmed`,
      );
    }
    const lease = readLease(this.#world.leaseOf(this.#lock));
    if (lease.uid === pod.plan.uid && lease.token === token) return;
    const { sidecar } = pod;
    const state = sidecar?.proc.alive === true ? sidecar.view().state : undefined;
    if (state === 'held' || (state === 'unrenewed' && record.continues)) return;
    if (state !== undefined && sidecar?.proc.pausedSince(record.atMs) === true) return;
    this.#fail('no program starts without holding', `${text}, held by ${lease.holder} with ${lease.token}`);
  }

  /** Marks on Pods tell of grants to them. */
  podChanged({ type, object, old }: Change): void {
    const { uid, deletionGracePeriodSeconds } = object.metadata;
    const longest = this.#world.planOf(uid)?.graceSeconds ?? 0;
    // Then deleted by force before a slow operator has seen how long it may take: nobody can know.
    const wasLong = (deletionGracePeriodSeconds ?? 0) > longest;
    if (type === 'DELETED' && wasLong && this.#hasSlowSight()) this.#forgotten.add(uid);
    const text = object.metadata.annotations?.[TOKEN_ANNOTATION];
    if (type !== 'MODIFIED' || text === undefined || text === old?.metadata.annotations?.[TOKEN_ANNOTATION]) return;
    if (this.grants.get(BigInt(text))?.uid !== object.metadata.uid) {
      this.#fail('a Pod is marked with its own grant', `${object.metadata.name} with ${text}`);
    }
  }

  lockChanged({ type, object, who }: Change): void {
    if (type !== 'MODIFIED' || who.kind !== 'operator') return;
    const status = (object.status ?? {}) as {
      readonly holder?: { readonly uid: string };
      readonly fencingToken?: string;
      readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    };
    const { holder, fencingToken = '0', conditions = [] } = status;
    const isHeld = conditions.some((condition) => condition.type === 'Held' && condition.status === 'True');
    // An operator whose view of the Lease lags behind its view of the lock names the holder of before for a moment.
    const isStrict = isHeld && !this.#hasSlowSight();
    if (isStrict && holder !== undefined && this.grants.get(BigInt(fencingToken))?.uid !== holder.uid) {
      this.#fail('status names the holder of that token', `${holder.uid} with ${fencingToken}`);
    }
    if (holder !== undefined && ![...this.grants.values()].some(({ uid }) => uid === holder.uid)) {
      this.#fail('status names the holder of that token', `${holder.uid} was never granted it`);
    }
  }

  /** A guarded history takes no older token after a newer one, and one token comes from one life of one Pod only. */
  checkHistory(): void {
    const lives = new Map<bigint, string>();
    let highest = 0n;
    for (const { token, life } of this.#world.historyOf(this.#lock).guarded) {
      if (token < highest) this.#fail('a guarded history never goes back', `${token} after ${highest}`);
      highest = token;
      const known = lives.get(token) ?? life;
      lives.set(token, known);
      if (known === life || (podOf(known) === podOf(life) && this.withOrphans.has(podOf(life)))) continue;
      this.#fail('two Pods never hold one token', `${known} and ${life} wrote with ${token}`);
    }
  }

  #hasSlowSight(): boolean {
    return this.#world.scenario.faults.some(({ kind }) => SLOW_SIGHT.has(kind));
  }

  #fail(invariant: string, text: string): void {
    this.#check.fail(invariant, `${this.#lock}: ${text}`);
  }
}

/** The Pod of a life. */
export const podOf = (life: string): string => life.split('#', 1)[0] ?? '';

/** The longest grace period that a Pod is deleted with. */
const LONGEST_GRACE_MS = 65_000;

const TOLD_TO_STOP = 'a holder is told to stop before its lease passes on';
const YIELD = 'a holder is asked to yield once, and for somebody';
const STOPPED = 'a program is stopped before its lease passes on';

/** With these the operator may see a waiter much later than the API server does. */
const SLOW_SIGHT = new Set([
  'lagOperator',
  'deletePodUnseen',
  'pauseOperator',
  'slowEverywhere',
  'lossyEverywhere',
  'apiDown',
  'twoLeaders',
  'switchLeader',
  'killOperator',
  'killOperatorAtWrite',
  'breakWatches',
  'jumpWall',
]);

interface LeaseFacts {
  readonly token: bigint | undefined;
  readonly holder: string;
  readonly uid: string;
  readonly acquired: string;
  readonly renewed: string;
  readonly lapseSeconds: number;
  readonly isPodGone: boolean;
  readonly continues: boolean;
  readonly yieldAsked: string | undefined;
}

/** Held by nobody's Pod, in the stead of a holder whose grant was broken. */
const isBroken = ({ holder }: Pick<LeaseFacts, 'holder'>): boolean =>
  holder.startsWith('break-') && holder.endsWith('_broken');

function readLease(lease: RawLease | undefined): LeaseFacts {
  const annotations = lease?.metadata.annotations ?? {};
  const text = annotations[TOKEN_ANNOTATION];
  const holder = lease?.spec?.holderIdentity ?? '';
  const seconds = (name: string) => Number(annotations[name] ?? '0');
  return {
    token: text === undefined ? undefined : BigInt(text),
    holder,
    uid: holder.slice(holder.lastIndexOf('_') + 1),
    acquired: lease?.spec?.acquireTime ?? '',
    renewed: lease?.spec?.renewTime ?? '',
    lapseSeconds:
      (lease?.spec?.leaseDurationSeconds ?? 0) +
      seconds('kilit.dev/takeover-delay-seconds') +
      seconds('kilit.dev/grace-seconds'),
    isPodGone: annotations[TAKEOVER_ANNOTATION] === 'PodGone',
    continues: annotations[ON_RENEWAL_FAILURE_ANNOTATION] === 'ContinueFenced',
    yieldAsked: annotations[YIELD_ANNOTATION],
  };
}
