import type { Kubelet } from '../world/kubelet.ts';
import { gatedNames, type PodOnNode } from '../world/pod-on-node.ts';
import type { Program } from '../world/program.ts';
import type { World } from '../world/world.ts';

/** A stop of one container: until the kubelet notices, and for each kill. */
const NOTICE_MS = 1_000;
const KILL_MS = 2_150;

/**
 * Whether the promise of a prompt stop is stated for this program at all, by what happened since `fromMs`.
 *
 * The stated exceptions: a frozen node, a kubelet that is stopped or busy, a runtime that lost its state or the record
 * of an exit, a frozen sidecar.
 */
export function excuse(
  program: Program,
  { pod, kubelet }: { readonly pod: PodOnNode; readonly kubelet: Kubelet },
  fromMs: number,
): string | undefined {
  if (kubelet.proc.pausedSince(fromMs)) return 'kubelet or node frozen';
  if (!kubelet.isSynced || kubelet.lastDownAt >= fromMs) return 'kubelet restarted';
  if (pod.busyFor === kubelet.proc || pod.busyUntil >= fromMs || pod.lastExcuseAt >= fromMs)
    return 'worker busy, or record lost';
  if (program.sidecar?.proc.pausedSince(fromMs) === true) return 'sidecar frozen';
  // Orphans share the Pod's identity with its new containers: each sidecar acts on the other's grant.
  if (pod.statesLost > 0 && pod.madeUp === undefined) return 'runtime lost its state, Pod begun anew';
  if (pod.orphans.has(program) && !isHolding(program)) return 'orphan of a lost runtime';
  return undefined;
}

export const isHolding = (program: Program): boolean =>
  program.sidecar?.proc.alive === true && program.sidecar.view().state === 'held';

/** A sidecar has ended: unless the Pod ends anyway, all its programs are dead within a stated time. */
export function checkPromptStop(world: World, pod: PodOnNode): void {
  if (pod.isTerminating || pod.isFinished || pod.plan.mode !== 'gate') return;
  const programs = pod.livingPrograms().filter(({ sidecar }) => sidecar?.proc.alive === false);
  if (programs.length === 0) return;
  const endedAt = world.time.now();
  const boundMs = NOTICE_MS + KILL_MS * gatedNames(pod.plan).length;
  world.time.after(boundMs, () => {
    const found = world.podOnNode(pod.plan.uid);
    if (found === undefined || pod.isTerminating || pod.isFinished) return;
    for (const program of programs) {
      if (!program.alive || excuse(program, found, endedAt - 1_000) !== undefined) continue;
      world.checker.fail(
        'a lost program is stopped promptly',
        `${program.life} lives ${(boundMs / 1000).toFixed(1)} s after its sidecar ended`,
      );
    }
  });
}
