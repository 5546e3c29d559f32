import { setTimeout as sleep } from 'node:timers/promises';

/**
 * Asks until the answer is there. The bound is generous: it fails a test that hangs, and measures nothing.
 *
 * @throws Error that says what was waited for and what was seen last.
 */
export async function waitFor<Value>(
  what: string,
  probe: () => Value | undefined | false | Promise<Value | undefined | false>,
  { seconds = 60, everyMs = 100 }: { readonly seconds?: number; readonly everyMs?: number } = {},
): Promise<Value> {
  const until = performance.now() + seconds * 1000;
  let last: unknown;
  for (;;) {
    try {
      const value = await probe();
      if (value !== undefined && value !== false) return value;
      last = value;
    } catch (err) {
      last = err;
    }
    if (performance.now() > until) {
      throw new Error(
        `Waited ${seconds} s for: ${what}. Seen last: ${last instanceof Error ? last.message : String(last)}`,
      );
    }
    await sleep(everyMs);
  }
}

/** For things that must *not* happen: watches for a while and throws if they do. */
export async function staysSo(what: string, seconds: number, holds: () => boolean | Promise<boolean>): Promise<void> {
  const until = performance.now() + seconds * 1000;
  while (performance.now() < until) {
    if (!(await holds())) throw new Error(`It should have stayed so for ${seconds} s: ${what}`);
    await sleep(100);
  }
}
