import { randomUUID } from 'node:crypto';
import { backoffMs } from '../core/backoff.ts';
import type { RunFiles } from './files.ts';
import type { Log } from './log.ts';
import { type SetTimer, sleep } from './timer.ts';

/**
 * The init container `kilit-reset`: clears what an earlier life of the Pod left, waits out the back-off, and leaves the
 * mark of a fresh start.
 *
 * It runs again only after all containers were killed (RestartAllContainers, or a new sandbox), never after a crash of
 * a program alone: so the mark says that all former programs are dead. The mark comes last: whatever ends this early
 * leaves none.
 */
export async function reset({
  files,
  log,
  setTimer,
  signal,
}: {
  readonly files: RunFiles;
  readonly log: Log;
  readonly setTimer: SetTimer;
  readonly signal: AbortSignal;
}): Promise<void> {
  if (files.hasGrant()) {
    // A sidecar that lost its lock removes its files first; this one was killed while it held.
    files.removeGrant();
    files.recordLoss('Killed: the sidecar ended without a word', 0);
  }
  files.removeSocket();
  files.consumeEpoch();
  const pauseMs = backoffMs(files.readLosses());
  if (pauseMs > 0) {
    log.info({ durationSeconds: pauseMs / 1000 }, 'Delayed start after losses');
    await sleep(setTimer, pauseMs, signal);
    signal.throwIfAborted();
  }
  files.writeEpoch(randomUUID());
}
