import type { Random } from '../world/random.ts';

/** Everything that can go wrong; docs/spec.md says which of these the promises are stated for. */
export const FAULT_KINDS = [
  'pauseSidecar',
  'pauseProgram',
  'pauseKubelet',
  'pauseOperator',
  'suspendNode',
  'killSidecar',
  'terminateSidecar',
  'killProgram',
  'restartKubelet',
  'killSidecarAndKubelet',
  'loseExitRecord',
  'loseState',
  'makeUpStatus',
  'busyWorker',
  'fillVolume',
  'cutNode',
  'cutSidecar',
  'failWrites',
  'silentSidecar',
  'slowSidecar',
  'slowThenCut',
  'lossySidecar',
  'slowEverywhere',
  'lossyEverywhere',
  'apiDown',
  'lagOperator',
  'lagSidecar',
  'breakWatches',
  'killOperator',
  'killOperatorAtWrite',
  'twoLeaders',
  'switchLeader',
  'jumpWall',
  'freezeWall',
  'deletePod',
  'deletePodAndCut',
  'deletePodUnseen',
  'forceDeletePod',
  'evictPod',
  'collectPod',
  'nodeNotReady',
  'deleteNode',
  'createPod',
  'deleteLock',
  'deleteLease',
  'editSpec',
  'forgeWrite',
  'raiseBase',
  'cordonNode',
  'rollOut',
  'askBreak',
  'askHandover',
  'editTerms',
  'breakImage',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** One fault of a schedule. Whom it hits is looked up when it happens. */
export interface Fault {
  readonly index: number;
  readonly kind: FaultKind;
  readonly atMs: number;
  readonly forMs: number;
  /** Below `AT_HOLDER`: the present holder, else somebody. */
  readonly aim: number;
  /** For what else a kind has to choose, in [0, 1). */
  readonly dice: number;
}

export const AT_HOLDER = 0.75;

/** What makes a holder lose by its deadline, or at all, in a scenario that leaves no room. */
const TIGHT_KINDS: readonly FaultKind[] = [
  'cutSidecar',
  'failWrites',
  'silentSidecar',
  'slowThenCut',
  'deletePodUnseen',
  'deletePodAndCut',
  'terminateSidecar',
  'makeUpStatus',
];

export function drawFaults(
  random: Random,
  span: { readonly fromMs: number; readonly toMs: number; readonly untilMs: number; readonly isTight: boolean },
): readonly Fault[] {
  if (span.isTight) {
    const count = random.int(1, 3);
    return schedule(random, { ...span, count, kinds: TIGHT_KINDS }).map((fault) => ({
      ...fault,
      aim: fault.aim * AT_HOLDER,
      forMs: span.untilMs - fault.atMs,
    }));
  }
  // Some runs are about one kind of trouble, so that rare combinations of the same kind come up too.
  const kinds = random.chance(0.5) ? FAULT_KINDS : Array.from({ length: 4 }, () => random.pick(FAULT_KINDS));
  return schedule(random, { ...span, count: random.int(2, 12), kinds });
}

function schedule(
  random: Random,
  span: {
    readonly fromMs: number;
    readonly toMs: number;
    readonly count: number;
    readonly kinds: readonly FaultKind[];
  },
): readonly Fault[] {
  const { count, kinds } = span;
  return Array.from({ length: count }, () => ({
    kind: random.pick(kinds),
    atMs: random.between(span.fromMs, span.toMs),
    forMs: random.chance(0.7) ? random.between(200, 15_000) : random.between(5_000, 40_000),
    aim: random.next(),
    dice: random.next(),
  }))
    .toSorted((a, b) => a.atMs - b.atMs)
    .map((fault, index) => ({
      index,
      ...fault,
      forMs: Math.min(fault.forMs, span.toMs + 10_000 - fault.atMs),
    }));
}

export function describeFault({ index, kind, atMs, forMs, aim, dice }: Fault): string {
  const at = (atMs / 1000).toFixed(1);
  return `#${index} ${kind} at ${at} s for ${(forMs / 1000).toFixed(1)} s (aim ${aim.toFixed(2)}, dice ${dice.toFixed(2)})`;
}
