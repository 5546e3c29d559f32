import type { Mode } from '../../../src/core/holder-types.ts';
import type { ProgramBehaviour } from '../world/program.ts';
import { createRandom, type Random } from '../world/random.ts';
import { drawFaults, type Fault } from './faults.ts';

/** A Pod as its author wishes it, before it has a UID. */
export interface PodWish {
  readonly name: string;
  readonly lock: string;
  readonly node: string;
  readonly mode: Mode;
  readonly restartPolicy: 'Always' | 'OnFailure' | 'Never';
  readonly graceSeconds: number;
  readonly programs: readonly ProgramBehaviour[];
  readonly gatedInit: ProgramBehaviour | undefined;
  readonly createdAtMs: number;
  /** The Deployment that made it, and of which version of its template; `undefined`: a bare Pod. */
  readonly workload?: { readonly name: string; readonly revision: string } | undefined;
  /** Until then its programs' image cannot be pulled. */
  readonly badImageUntilMs?: number | undefined;
}

export interface LockWish {
  readonly name: string;
  readonly leaseDurationSeconds: number;
  readonly takeoverDelaySeconds: number;
  readonly createdAtMs: number;
  /** What else stands in its spec. */
  readonly terms?: LockTerms;
}

export interface LockTerms {
  readonly takeover?: 'PodGone';
  readonly onRenewalFailure?: 'ContinueFenced';
  readonly startDeadlineSeconds?: number;
  readonly maxHoldSeconds?: number;
}

/** All that a seed determines, but the draws of the network and of the nodes while it runs. */
export interface Scenario {
  readonly seed: number;
  readonly nodes: readonly { readonly name: string; readonly rate: number }[];
  readonly operators: readonly { readonly name: string; readonly rate: number }[];
  readonly locks: readonly LockWish[];
  readonly pods: readonly PodWish[];
  readonly tokenBase: string;
  readonly staleLists: boolean;
  readonly faults: readonly Fault[];
  /** From here on nothing fails and no program ends. */
  readonly calmFromMs: number;
  readonly endMs: number;
}

/** The fastest clock over the slowest: 1.0997, so that two clocks are at most 10 % apart. */
const SLOWEST = 0.9535;
const FASTEST = 1.0485;

export function drawScenario(seed: number): Scenario {
  const random = createRandom(seed, 'scenario');
  // A tight scenario leaves no room: clocks as far apart as they may be, long leases, programs that have to be killed.
  const isTight = random.chance(0.2);
  const isSkewed = random.chance(0.6);
  const rate = () =>
    !isSkewed ? 1 : random.chance(0.6) ? random.pick([SLOWEST, FASTEST]) : random.between(SLOWEST, FASTEST);
  const nodes = Array.from({ length: random.int(1, 3) }, (_, i) => ({
    name: `node-${i}`,
    rate: isTight ? SLOWEST : rate(),
  }));
  const operators = Array.from({ length: 2 }, (_, i) => ({ name: `operator-${i}`, rate: isTight ? FASTEST : rate() }));
  const locks = Array.from({ length: random.chance(0.15) ? 2 : 1 }, (_, i) => drawLock(random, i, isTight));
  const faultyMs = isTight ? 20_000 + 2_200 * (locks[0]?.leaseDurationSeconds ?? 0) : random.between(40_000, 90_000);
  const pods = locks.flatMap((lock) =>
    Array.from({ length: random.int(2, 4) }, (_, i) =>
      drawPod(random, { lock: lock.name, nodes, index: i, faultyMs, isTight }),
    ),
  );
  const calmFromMs = faultyMs + 15_000;
  return {
    seed,
    nodes,
    operators,
    locks,
    pods,
    tokenBase: random.chance(0.25) ? String(random.int(100_000, 900_000)) : '0',
    staleLists: random.chance(0.3),
    faults: drawFaults(random.fork('faults'), {
      fromMs: 10_000,
      toMs: isTight ? 20_000 : faultyMs,
      untilMs: faultyMs + 10_000,
      isTight,
    }),
    calmFromMs,
    endMs: calmFromMs + calmMs(locks, pods),
  };
}

/** How long a waiter may have to wait once nothing fails any more: what liveness is checked by. */
function calmMs(locks: readonly LockWish[], pods: readonly PodWish[]): number {
  const lease = Math.max(...locks.map((lock) => lock.leaseDurationSeconds));
  const delay = Math.max(...locks.map((lock) => Math.max(lock.takeoverDelaySeconds, 2 * 5 + 1)));
  const grace = Math.max(...pods.map((pod) => pod.graceSeconds));
  const start = Math.max(...locks.map(({ terms }) => terms?.startDeadlineSeconds ?? 0));
  // A lapse seen by a new operator, the own back-off of a Pod, and a time in which nothing may be written any more.
  const once = (lease + delay + grace) * 1.1 * 1000 + LONGEST_BACKOFF_MS + SETTLE_MS + QUIET_MS;
  // Another if an administrator has to break a grant that no time ends, and the yields after that.
  const again = locks.some(({ terms }) => terms !== undefined) ? once : 0;
  return once + again + start * 1000;
}

const LONGEST_BACKOFF_MS = 66_000;
const SETTLE_MS = 30_000;
/** At rest nothing but renewals is written for this long. */
export const QUIET_MS = 15_000;

function drawLock(random: Random, index: number, isTight: boolean): LockWish {
  return {
    name: index === 0 ? 'billing' : `lock-${index}`,
    leaseDurationSeconds: random.pick(isTight ? [5, 15, 40, 60] : [5, 6, 10, 15, 15, 15, 20, 40]),
    takeoverDelaySeconds: isTight ? 0 : random.pick([0, 0, 5, 5, 10]),
    createdAtMs: random.chance(0.2) ? random.between(3_000, 12_000) : random.between(0, 500),
    ...(!isTight && random.chance(0.4) && { terms: drawTerms(random) }),
  };
}

export function drawTerms(random: Random): LockTerms {
  return {
    ...(random.chance(0.4) && { takeover: 'PodGone' }),
    ...(random.chance(0.3) && { onRenewalFailure: 'ContinueFenced' }),
    ...(random.chance(0.5) && { startDeadlineSeconds: random.pick([10, 15, 30]) }),
    ...(random.chance(0.3) && { maxHoldSeconds: random.pick([10, 20, 40]) }),
  };
}

export function drawPod(
  random: Random,
  context: {
    readonly lock: string;
    readonly nodes: readonly { readonly name: string }[];
    readonly index: number;
    readonly faultyMs: number;
    readonly isTight: boolean;
  },
): PodWish {
  const { lock, nodes, index, faultyMs, isTight } = context;
  const restartPolicy = random.pick(['Always', 'Always', 'Never', 'OnFailure'] as const);
  const programs = Array.from({ length: random.pick([1, 1, 1, 2, 3]) }, () => ({
    ...drawProgram(random, faultyMs),
    ...(isTight && { stopsMs: undefined, runsMs: undefined }),
  }));
  return {
    name: `${lock}-${index}`,
    lock,
    node: random.pick(nodes).name,
    mode: random.chance(0.8) ? 'gate' : 'standby',
    restartPolicy,
    graceSeconds: random.pick([2, 5, 10, 30, 30]),
    programs,
    gatedInit: random.chance(0.15)
      ? { runsMs: random.between(200, 3_000), exitCode: 0, stopsMs: undefined, writeEveryMs: 500, standsDownMs: 10 }
      : undefined,
    createdAtMs: random.between(0, 8_000),
    ...(!isTight &&
      random.chance(0.4) && { workload: { name: `${lock}-app`, revision: random.pick(['a', 'a', 'b']) } }),
    ...(!isTight && random.chance(0.1) && { badImageUntilMs: random.between(10_000, faultyMs + 10_000) }),
  };
}

function drawProgram(random: Random, faultyMs: number): ProgramBehaviour {
  const ends = random.chance(0.35);
  return {
    runsMs: ends ? random.between(3_000, faultyMs / 2) : undefined,
    exitCode: random.chance(0.7) ? 0 : 3,
    stopsMs: random.chance(0.5) ? undefined : random.between(10, 4_000),
    writeEveryMs: random.between(400, 2_000),
    standsDownMs: random.chance(0.6) ? random.between(10, 2_500) : undefined,
  };
}
