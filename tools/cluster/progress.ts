import type { OnProgress } from './types.ts';

/** A step that takes longer than this says so, and again after each further period. */
const FIRST_HEARTBEAT_MILLISECONDS = 2000;
const HEARTBEAT_MILLISECONDS = 5000;

/** Replaces the text that the heartbeat shows after the step's name. */
export type Detail = (text: string) => void;

export const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(1)} s`;

/**
 * Runs one step and tells when it took longer than 2 s, when it is done and when it failed, with its elapsed time.
 */
export async function step<T>(onProgress: OnProgress, name: string, work: (detail: Detail) => Promise<T>): Promise<T> {
  const startedAt = performance.now();
  const elapsed = (): string => seconds(performance.now() - startedAt);
  let detail = '';
  const beat = (): void => {
    onProgress(`…      ${name}: ${elapsed()}${detail === '' ? '' : `, ${detail}`}`);
    timer = setTimeout(beat, HEARTBEAT_MILLISECONDS);
  };
  let timer = setTimeout(beat, FIRST_HEARTBEAT_MILLISECONDS);
  try {
    const result = await work((text) => {
      detail = text;
    });
    onProgress(`ok     ${name} (${elapsed()})`);
    return result;
  } catch (error) {
    onProgress(`FAILED ${name} (${elapsed()})`);
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

export interface WaitOptions {
  readonly what: string;
  readonly timeoutSeconds: number;
  readonly everyMilliseconds?: number;
  /** Added to the error, for example the end of a log. */
  readonly explain?: () => Promise<string> | string;
}

export const sleep = (milliseconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, milliseconds);
  });

/** Polls until the condition holds; throws with `explain` when it does not in time. */
export async function waitFor(condition: () => Promise<boolean> | boolean, options: WaitOptions): Promise<void> {
  const deadline = performance.now() + options.timeoutSeconds * 1000;
  for (;;) {
    if (await condition()) return;
    if (performance.now() > deadline) break;
    await sleep(options.everyMilliseconds ?? 200);
  }
  const reason = (await options.explain?.()) ?? '';
  throw new Error(`${options.what}: not within ${options.timeoutSeconds} s${reason === '' ? '' : `\n${reason}`}`);
}
