import { RESET_CONTAINER, SIDECAR_CONTAINER } from '../../../src/api/names.ts';
import type { Proc } from './machine.ts';
import type { Program, ProgramBehaviour } from './program.ts';
import { createMemoryFiles, type MemoryFiles } from './run-files.ts';
import type { Identity, SidecarProcess } from './sidecar.ts';

/** What a user wishes a Pod to be. */
export interface PodPlan extends Identity {
  readonly restartPolicy: 'Always' | 'OnFailure' | 'Never';
  readonly graceSeconds: number;
  /** One for each program container. */
  readonly programs: readonly ProgramBehaviour[];
  /** An init container after the sidecar, such as a migration. */
  readonly gatedInit: ProgramBehaviour | undefined;
  readonly badImageUntilMs?: number | undefined;
  readonly workload?: { readonly name: string; readonly revision: string } | undefined;
}

/** What the container runtime has of one container. */
export interface Container {
  readonly name: string;
  readonly id: string;
  readonly startedAt: number;
  exit: { readonly code: number; readonly at: number } | undefined;
  /** The runtime lost what it knew of the exit: the kubelet sees no such container. */
  isRecordLost: boolean;
}

/** What a kubelet reports of containers of which it knows nothing. */
export type MadeUp = 'unknown' | 'noId' | 'noFinish';

/** The programs that this Pod gates, in the order in which they are started. */
export function gatedNames(plan: PodPlan): readonly string[] {
  return [...(plan.gatedInit === undefined ? [] : ['migrate']), ...plan.programs.map((_, index) => `app-${index}`)];
}

/**
 * A Pod as it really is on its node: containers, files, processes. What anybody else knows of it comes from its kubelet.
 */
export class PodOnNode {
  readonly plan: PodPlan;
  readonly files: MemoryFiles;
  readonly containers = new Map<string, Container>();
  readonly restarts = new Map<string, number>();
  readonly programs = new Map<string, Program>();
  /** Processes that the runtime has forgotten: nobody will kill them. */
  readonly orphans = new Set<Program>();
  sidecar: SidecarProcess | undefined;
  readonly orphanSidecars: SidecarProcess[] = [];
  /** How often its runtime lost its state. */
  statesLost = 0;
  /** Counts runs of the init phase. */
  life = 0;
  /** The startup probe of the sidecar has been answered. */
  isStarted = false;
  isProbing = false;
  /** Nothing will be restarted any more. */
  isFinished = false;
  isTerminating = false;
  /** When its programs are killed at the latest. */
  killAt = Number.POSITIVE_INFINITY;
  /** The kubelet holds a terminal phase back for one to two seconds. */
  showsEnd = false;
  /** Nothing is left of it here. */
  isGone = false;
  madeUp: MadeUp | undefined;
  /** Until then no program of it can be started. */
  badImageUntil: number;
  /** Until when its worker is busy with something else, as with an image or a hook. */
  busyUntil = Number.NEGATIVE_INFINITY;
  /** The kubelet process whose worker is busy now: longer than `busyUntil` if the node was suspended meanwhile. */
  busyFor: Proc | undefined;
  /** When it was last busy, restarted alone, or otherwise not what the bounds of a prompt stop are stated for. */
  lastExcuseAt = Number.NEGATIVE_INFINITY;
  wake: () => void = () => {};
  isWoken = false;

  constructor(plan: PodPlan) {
    this.plan = plan;
    this.badImageUntil = plan.badImageUntilMs ?? Number.NEGATIVE_INFINITY;
    this.files = createMemoryFiles(plan.mode);
  }

  get lifeName(): string {
    return `${this.plan.name}/${this.plan.uid.slice(-4)}#${this.life}`;
  }

  /** Every living program, whether its runtime knows it or not. */
  livingPrograms(): Program[] {
    return [...this.programs.values(), ...this.orphans].filter((program) => program.alive);
  }

  ended(name: string): { readonly code: number } | undefined {
    const container = this.containers.get(name);
    return container === undefined || container.isRecordLost ? undefined : container.exit;
  }

  isRunning(name: string): boolean {
    const container = this.containers.get(name);
    return container !== undefined && container.exit === undefined;
  }
}

export const INJECTED = [RESET_CONTAINER, SIDECAR_CONTAINER] as const;
