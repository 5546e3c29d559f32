import type { Instant } from './lease.ts';
import { gatedInitContainers, type RawContainerStatus, type RawPod } from './raw-pod.ts';

/**
 * What this process has seen of a Pod's programs, by its own clock.
 *
 * Programs are the containers and the init containers behind the gate (a migration), without native sidecars, which run
 * beside a program that may never start. Observed afresh after a restart: what it concludes comes late, never early.
 */
export interface Progress {
  /** Container ID → since when it has been seen to run. Empty: no program runs. */
  readonly runs: Readonly<Record<string, Instant>>;
  /** How many gated init containers have done their work. */
  readonly completed: number;
  /** When the last run that counts ended, or the last init container completed; `undefined`: none yet. */
  readonly lastAt: Instant | undefined;
}

/** A run that ends sooner is a crash, not a start, in milliseconds. */
export const SHORTEST_RUN_MS = 30_000;

/** Takes in a state of the Pod. */
export function progressOf(pod: RawPod, now: Instant, previous: Progress | undefined): Progress {
  const inits = statuses(
    gatedInitContainers(pod).filter(({ restartPolicy }) => restartPolicy !== 'Always'),
    pod.status?.initContainerStatuses,
  );
  const programs = [...inits, ...statuses(pod.spec.containers, pod.status?.containerStatuses)];
  const running = programs.filter(({ state }) => state?.running !== undefined);
  const former = previous?.runs ?? {};
  const runs = Object.fromEntries(
    running.map(({ name, containerID }) => containerID ?? name).map((id) => [id, former[id] ?? now]),
  );
  const completed = inits.filter(({ state }) => state?.terminated?.exitCode === 0).length;
  const ended = Object.entries(former).some(([id, since]) => !(id in runs) && now - since >= SHORTEST_RUN_MS);
  const advanced = previous !== undefined && completed > previous.completed;
  return { runs, completed, lastAt: ended || advanced ? now : previous?.lastAt };
}

function statuses(
  containers: readonly { readonly name: string }[],
  all: readonly RawContainerStatus[] | undefined,
): readonly RawContainerStatus[] {
  return containers.flatMap(({ name }) => all?.filter((status) => status.name === name) ?? []);
}

/**
 * When a grant that was confirmed at `confirmedAt` counts as not started, or undefined while a program runs.
 *
 * A crash loop does: runs shorter than `SHORTEST_RUN_MS` do not move the time, and it is acted on between two of them.
 */
export function notStartedAt(
  { runs, lastAt }: Progress,
  { confirmedAt, startDeadlineSeconds }: { readonly confirmedAt: Instant; readonly startDeadlineSeconds: number },
): Instant | undefined {
  if (Object.keys(runs).length > 0) return undefined;
  return Math.max(confirmedAt, lastAt ?? confirmedAt) + startDeadlineSeconds * 1000;
}
