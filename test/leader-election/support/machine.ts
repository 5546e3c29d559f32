import type { Clock } from '../../../src/leader-election/index.ts';
import type { VirtualTime } from './virtual-time.ts';

/** One computer with one process: its own clocks, and the power to freeze. */
export interface Machine {
  readonly clock: Clock;
  /** Runs the callback now, or at the resumption when the process is paused. */
  deliver(callback: () => void): void;
  /** `freeze` stops the process only; `suspend` stops the monotonic clock too, but not the boot clock. */
  pause(kind: 'freeze' | 'suspend', seconds: number): void;
  stepWallClock(seconds: number): void;
}

export function createMachine(
  time: VirtualTime,
  { rate = 1, random = () => 0 }: { rate?: number; random?: () => number } = {},
): Machine {
  let deferred: (() => void)[] = [];
  let paused: 'freeze' | 'suspend' | undefined;
  let suspendedAt = 0;
  let suspendedSeconds = 0;
  let wallOffsetSeconds = 1_700_000_000;

  function monotonicSeconds(): number {
    const running = paused === 'suspend' ? suspendedAt : time.now();
    return (running - suspendedSeconds) * rate + 5000;
  }

  function deliver(callback: () => void): void {
    if (paused === undefined) callback();
    else deferred.push(callback);
  }

  function setTimer(seconds: number, fire: () => void): () => void {
    const dueAt = monotonicSeconds() + seconds;
    let isCancelled = false;
    let disarm = () => {};
    const arm = () => {
      const left = dueAt - monotonicSeconds();
      disarm = time.after(Math.max(left / rate, 0), () =>
        deliver(() => {
          if (isCancelled) return;
          if (monotonicSeconds() < dueAt - 1e-6) arm();
          else fire();
        }),
      );
    };
    arm();
    return () => {
      isCancelled = true;
      disarm();
    };
  }

  function resume(): void {
    if (paused === 'suspend') suspendedSeconds += time.now() - suspendedAt;
    paused = undefined;
    const callbacks = deferred.map((callback) => ({ callback, order: random() }));
    deferred = [];
    // Each in an event of its own, in any order: replies and timers race after a pause.
    for (const { callback } of callbacks.toSorted((a, b) => a.order - b.order)) time.after(0, () => deliver(callback));
  }

  return {
    clock: {
      monotonicSeconds,
      bootSeconds: () => Math.floor(time.now() * rate * 100) / 100 + 90_000,
      wallMicroseconds: () => BigInt(Math.floor((time.now() * rate + wallOffsetSeconds) * 1000)) * 1000n,
      setTimer,
    },
    deliver,
    pause(kind, seconds) {
      if (paused !== undefined) return;
      paused = kind;
      suspendedAt = time.now();
      time.after(seconds, resume);
    },
    stepWallClock(seconds) {
      wallOffsetSeconds += seconds;
    },
  };
}
