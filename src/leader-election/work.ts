import { type Clock, sleep } from './clock.ts';

/** What a process does while it leads. It should settle soon after `leading.signal` aborts. */
export type Lead = (leading: Leading) => Promise<void>;

export interface Leading {
  readonly signal: AbortSignal;
  /** As it stands in the Lease: with the identity it tells this term from every other (`fencingTokenOf`). */
  readonly acquireTime: string;
}

export type WorkEnd = { readonly kind: 'returned' } | { readonly kind: 'threw'; readonly err: unknown };

/** Starts the work. An abort error after the signal has aborted is a clean end. */
export async function startWork(lead: Lead, leading: Leading): Promise<WorkEnd> {
  const { signal } = leading;
  // The deadline is checked once more: the process may have been paused since the reply to the acquisition.
  if (signal.aborted) return { kind: 'returned' };
  try {
    await lead(leading);
    return { kind: 'returned' };
  } catch (err) {
    const isClean = signal.aborted && (err === signal.reason || (err instanceof Error && err.name === 'AbortError'));
    return isClean ? { kind: 'returned' } : { kind: 'threw', err };
  }
}

/** Waits for the work; gives up with `undefined` when it has not ended `seconds` after `stopping` aborted. */
export async function waitForWork(
  clock: Clock,
  { work, stopping, seconds }: { work: Promise<WorkEnd>; stopping: AbortSignal; seconds: number },
): Promise<WorkEnd | undefined> {
  const ended = new AbortController();
  const bound = new Promise<undefined>((resolve) => {
    const startBound = () => void sleep(clock, seconds, ended.signal).then(() => resolve(undefined));
    if (stopping.aborted) startBound();
    else stopping.addEventListener('abort', startBound, { once: true });
  });
  try {
    return await Promise.race([work, bound]);
  } finally {
    ended.abort();
  }
}
