/** What an act works with: the cluster, what is seen of it, and the words to the viewer. */
import { setTimeout } from 'node:timers/promises';
import { type Cluster, type OnProgress } from '../cluster/index.ts';
import { seconds } from '../cluster/progress.ts';
import { LEASE_SECONDS, LOCK, NAMESPACE } from './objects.ts';
import { type Leader, leaderOf } from './operator.ts';
import type { Screen } from './screen.ts';
import { rowsOf, type Sight } from './sight.ts';
import { wrap } from './view.ts';
import { startWatches, type Watches } from './watches.ts';

/** Generous: it fails an act that hangs, and measures nothing. */
const PATIENCE_SECONDS = 120;
/** What changes within this time is shown as one change. */
const SETTLE_MILLISECONDS = 100;
const TICK_MILLISECONDS = 250;
const READING_MILLISECONDS = 4000;

export interface Stage extends AsyncDisposable {
  readonly cluster: Cluster;
  readonly watches: Watches;
  heading(text: string): void;
  /** A paragraph: what happens, and why it matters. Before a live table it leaves time to read. */
  say(text: string): Promise<void>;
  /** The operator's Lease goes on naming it for a while. */
  leaderKilled(leader: Leader): void;
  /** What came out. */
  result(text: string): void;
  /** @throws DemoFailed when the claim does not hold; else tells it. */
  check(holds: boolean, claim: string): void;
  /** Waits until `find` finds something in what is seen. @throws DemoFailed */
  until<Found>(what: string, find: (sight: Sight) => Found | undefined): Promise<Found>;
  pod(uid: string): Sight['pods'][number];
}

/** An act did not show what it claims. */
export class DemoFailed extends Error {
  override readonly name = 'DemoFailed';
}

export interface StageOptions {
  readonly cluster: Cluster;
  readonly screen: Screen;
  readonly signal: AbortSignal;
  readonly elapsed: () => string;
}

export function openStage(at: StageOptions): Stage {
  const { cluster, screen, signal } = at;
  const watches = startWatches(cluster);
  let pending: { readonly what: string; readonly since: number } | undefined;
  let killed: Leader | undefined;
  let closed = false;

  function show(): void {
    clearTimeout(soon);
    soon = undefined;
    if (closed) return;
    const sight = watches.sight();
    screen.show({
      title: `lock ${NAMESPACE}/${LOCK}   lease ${LEASE_SECONDS} s   operator: ${leaderText(leaderOf(sight), killed)}`,
      rows: rowsOf(sight),
      pending: pending && `waiting for ${pending.what}: ${seconds(performance.now() - pending.since)}`,
    });
  }
  let soon: NodeJS.Timeout | undefined;
  const stopListening = watches.onChange(() => {
    soon ??= globalThis.setTimeout(show, SETTLE_MILLISECONDS);
  });
  const ticking = setInterval(show, TICK_MILLISECONDS);

  const tell = (...lines: readonly string[]): void => {
    show();
    screen.print(...lines);
  };
  const { paint } = screen;

  return {
    cluster,
    watches,
    heading: (text) => tell('', paint('bold', text)),
    async say(text) {
      tell(...wrap(text, { width: screen.width, indent: 2 }));
      if (screen.live) await setTimeout(READING_MILLISECONDS, undefined, { signal });
    },
    leaderKilled(leader) {
      killed = leader;
    },
    result: (text) =>
      tell(...wrap(`=> ${text}`, { width: screen.width, indent: 2 }).map((line) => paint('cyan', line))),
    check(holds, claim) {
      if (!holds) throw new DemoFailed(`This does not hold: ${claim}`);
      tell(...wrap(`ok ${claim}`, { width: screen.width, indent: 2 }).map((line) => paint('green', line)));
    },
    async until(what, find) {
      pending = { what, since: performance.now() };
      try {
        return await firstFound({ watches, signal, what, find });
      } finally {
        pending = undefined;
      }
    },
    pod(uid) {
      const pod = watches.sight().pods.find((each) => each.metadata.uid === uid);
      if (pod === undefined) throw new DemoFailed(`The Pod with UID ${uid} is gone.`);
      return pod;
    },
    async [Symbol.asyncDispose]() {
      stopListening();
      show();
      closed = true;
      clearInterval(ticking);
      screen.leave();
      await watches[Symbol.asyncDispose]();
    },
  };
}

function leaderText(leader: Leader | undefined, killed: Leader | undefined): string {
  if (leader === undefined) return 'none leads';
  return leader.since === killed?.since ? `none leads, ${leader.pod} was killed` : `${leader.pod} leads`;
}

function firstFound<Found>(at: {
  readonly watches: Watches;
  readonly signal: AbortSignal;
  readonly what: string;
  readonly find: (sight: Sight) => Found | undefined;
}): Promise<Found> {
  const { watches, signal, what, find } = at;
  return new Promise((resolve, reject) => {
    const end = (act: () => void): void => {
      stop();
      clearTimeout(timer);
      signal.removeEventListener('abort', abort);
      act();
    };
    const look = (): void => {
      const found = find(watches.sight());
      if (found !== undefined) end(() => resolve(found));
    };
    const abort = (): void => end(() => reject(signal.reason as Error));
    const fail = (): void => end(() => reject(new DemoFailed(`Not within ${PATIENCE_SECONDS} s: ${what}`)));
    const timer = globalThis.setTimeout(fail, PATIENCE_SECONDS * 1000);
    const stop = watches.onChange(look);
    signal.addEventListener('abort', abort);
    if (signal.aborted) abort();
    else look();
  });
}

/**
 * The harness's lines with the elapsed time; those of a step that goes on stay only where they can be replaced.
 *
 * @throws the signal's reason at the end of a step after Ctrl-C, so that no further step begins.
 */
export const progressTo =
  ({ screen, elapsed, signal }: Pick<StageOptions, 'screen' | 'elapsed' | 'signal'>): OnProgress =>
  (line) => {
    const text = `${elapsed()}  ${line}`;
    if (line.startsWith('…')) return screen.transient(text);
    screen.show(undefined);
    // The step did not fail: the throw below ended it.
    if (!signal.aborted || !line.startsWith('FAILED')) screen.print(text);
    signal.throwIfAborted();
  };
