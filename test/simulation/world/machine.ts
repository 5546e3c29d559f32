import type { VirtualTime } from './time.ts';

/** 2026-01-01T00:00:00Z, in milliseconds: where every wall clock begins. */
const EPOCH_MS = 1_767_225_600_000;

/** No timer fires in no time, or time would stand still. */
const SHORTEST_TIMER_MS = 0.01;

/** The clocks of one computer. They run at its own rate; suspended, its monotonic clock stands still. */
export class Machine {
  readonly name: string;
  readonly time: VirtualTime;
  readonly rate: number;
  readonly procs = new Set<Proc>();
  #suspendedAt: number | undefined;
  #suspendedMs = 0;
  #wallOffsetMs = 0;
  #wallFrozenAt: number | undefined;

  constructor(time: VirtualTime, name: string, rate: number) {
    this.time = time;
    this.name = name;
    this.rate = rate;
  }

  monotonicMs(): number {
    return ((this.#suspendedAt ?? this.time.now()) - this.#suspendedMs) * this.rate + 5_000;
  }

  /** Counts suspended time too, in steps of 10 ms. */
  bootMs(): number {
    return Math.floor((this.time.now() * this.rate) / 10) * 10 + 90_000;
  }

  wallMs(): number {
    return Math.floor(this.#wallFrozenAt ?? EPOCH_MS + this.time.now() * this.rate + this.#wallOffsetMs);
  }

  wallMicros(): bigint {
    return BigInt(this.wallMs()) * 1000n;
  }

  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  freezeWall(isFrozen: boolean): void {
    this.#wallFrozenAt = isFrozen ? this.wallMs() : undefined;
  }

  /** All its processes stand still until `resume`, and so does the monotonic clock. */
  suspend(): void {
    if (this.#suspendedAt !== undefined) return;
    this.#suspendedAt = this.time.now();
    for (const proc of this.procs) proc.pause();
  }

  resume(): void {
    if (this.#suspendedAt === undefined) return;
    this.#suspendedMs += this.time.now() - this.#suspendedAt;
    this.#suspendedAt = undefined;
    for (const proc of this.procs) proc.resume();
  }

  get isSuspended(): boolean {
    return this.#suspendedAt !== undefined;
  }
}

/** One process: it can be paused at any point, killed at any point, and keeps time by its machine. */
export class Proc {
  readonly name: string;
  readonly machine: Machine;
  #alive = true;
  #pausedSince: number | undefined;
  #depth = 0;
  #deferred: (() => void)[] = [];
  /** The pauses that are over. */
  readonly #pauses: { readonly from: number; readonly to: number }[] = [];

  constructor(machine: Machine, name: string) {
    this.machine = machine;
    this.name = name;
    machine.procs.add(this);
    if (machine.isSuspended) this.pause();
  }

  get alive(): boolean {
    return this.#alive;
  }

  get paused(): boolean {
    return this.#depth > 0;
  }

  /** Runs `callback` in the process: now, when the pause is over, or never if it is dead. */
  deliver(callback: () => void): void {
    if (!this.#alive) return;
    if (this.#depth > 0) this.#deferred.push(callback);
    else callback();
  }

  /** A timer on the machine's monotonic clock. */
  readonly setTimer = (ms: number, fire: () => void): (() => void) => {
    const { machine } = this;
    const dueAt = machine.monotonicMs() + ms;
    let isCancelled = false;
    let disarm = () => {};
    const arm = () => {
      const leftMs = Math.max(SHORTEST_TIMER_MS, dueAt - machine.monotonicMs());
      disarm = machine.time.after(leftMs / machine.rate, () =>
        this.deliver(() => {
          if (isCancelled) return;
          if (machine.monotonicMs() < dueAt) arm();
          else fire();
        }),
      );
    };
    arm();
    return () => {
      isCancelled = true;
      disarm();
    };
  };

  pause(): void {
    this.#depth += 1;
    this.#pausedSince ??= this.machine.time.now();
  }

  /** What came meanwhile happens now, each in an event of its own, in the order in which it came. */
  resume(): void {
    if (this.#depth === 0) return;
    this.#depth -= 1;
    if (this.#depth > 0) return;
    const { time } = this.machine;
    this.#pauses.push({ from: this.#pausedSince ?? time.now(), to: time.now() });
    this.#pausedSince = undefined;
    const deferred = this.#deferred;
    this.#deferred = [];
    for (const callback of deferred) time.after(0, () => this.deliver(callback));
  }

  kill(): void {
    this.#alive = false;
    this.#deferred = [];
    this.machine.procs.delete(this);
  }

  /** Whether it stood still at any time since `from`. */
  pausedSince(from: number): boolean {
    return this.#pausedSince !== undefined || this.#pauses.some((pause) => pause.to >= from);
  }
}
