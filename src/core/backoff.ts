/**
 * The Pod's own back-off between a loss and the next place in the queue.
 *
 * The kubelet restarts all containers without any (RestartAllContainers has none), so a program that can never hold for
 * long would be started for ever as fast as the cluster can. `kilit-reset` waits this long before it lets the sidecar
 * start: a Pod that waits here has no running sidecar, so it gets no grant.
 */
export interface Losses {
  /** Losses in a row, without a long hold in between. */
  readonly count: number;
}

export const NO_LOSSES: Losses = { count: 0 };

/** A grant that was held for this long makes earlier losses forgotten, in milliseconds: ten minutes. */
export const LONG_HOLD_MS = 600_000;

const LONGEST_BACKOFF_SECONDS = 60;
const HIGHEST_COUNT = 1000;

/** Counts a loss after a hold of `heldMs`; a long hold makes it the first again. */
export function addLoss(losses: Losses, heldMs: number): Losses {
  return { count: heldMs >= LONG_HOLD_MS ? 1 : Math.min(losses.count + 1, HIGHEST_COUNT) };
}

/** How long to wait after the last loss, in milliseconds: nothing after the first, then 1, 2, 4 … 60 seconds. */
export function backoffMs({ count }: Losses): number {
  if (count <= 1) return 0;
  return Math.min(2 ** Math.min(count - 2, 10), LONGEST_BACKOFF_SECONDS) * 1000;
}

/** Reads the file `losses`. Anything but what `formatLosses` writes counts as no losses: a garbled file must not stop a Pod. */
export function parseLosses(text: string): Losses {
  const [, digits] = /^\{"count":(\d{1,4})\}\n?$/.exec(text) ?? [];
  return digits === undefined ? NO_LOSSES : { count: Math.min(Number(digits), HIGHEST_COUNT) };
}

/** Writes the file `losses`: JSON, one line. */
export function formatLosses({ count }: Losses): string {
  return `${JSON.stringify({ count })}\n`;
}
