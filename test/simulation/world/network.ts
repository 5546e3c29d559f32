import { Refusal } from '../api/objects.ts';
import type { Proc } from './machine.ts';
import type { Random } from './random.ts';
import type { VirtualTime } from './time.ts';

export type Outcome<Value> =
  | { readonly kind: 'ok'; readonly value: Value }
  | { readonly kind: 'refused'; readonly refusal: Refusal }
  /** No connection. */
  | { readonly kind: 'failed' }
  /** Whether it was or will be carried out is unknown. */
  | { readonly kind: 'timedOut' };

export interface Call<Value> {
  readonly proc: Proc;
  /** For the trace. */
  readonly what: string;
  readonly isWrite: boolean;
  readonly timeoutMs: number;
  readonly run: () => Value;
}

/** What may go wrong on the way to the API server, or in it. Each trouble counts how many faults cause it now. */
export interface Weather {
  /** Nothing passes. */
  cut: number;
  /** Requests take up to 3 s each way. */
  slow: number;
  /** Some requests or replies are lost, late by up to 20 s, or answered with 500. */
  lossy: number;
  /** Writes are answered with 503 or 403, lost, or carried out and never answered. */
  writesFail: number;
  /** All is carried out and nothing answered. */
  silent: number;
  /** Watch events come up to 20 s late. */
  lag: number;
}

export const clearSky = (): Weather => ({ cut: 0, slow: 0, lossy: 0, writesFail: 0, silent: 0, lag: 0 });

interface Fate {
  readonly requestMs: number;
  readonly replyMs: number;
  readonly error?: number | 'connection';
}

const LOST = Number.POSITIVE_INFINITY;

/** Called before a request is sent and after the API server has carried it out: where a process can be killed. */
export interface CallProbe {
  before(call: Call<unknown>): void;
  after(call: Call<unknown>): void;
}

/** The way of one process, or of one node, to the API server. */
export class Link {
  readonly weather = clearSky();
  readonly #time: VirtualTime;
  readonly #random: Random;
  readonly #everywhere: Weather;
  readonly #probe: CallProbe | undefined;
  /** The way of the node, if the process is on one. */
  readonly #below: Link | undefined;

  constructor(options: {
    readonly time: VirtualTime;
    readonly random: Random;
    readonly everywhere: Weather;
    readonly below?: Link | undefined;
    readonly probe?: CallProbe | undefined;
  }) {
    this.#time = options.time;
    this.#random = options.random;
    this.#everywhere = options.everywhere;
    this.#below = options.below;
    this.#probe = options.probe;
  }

  has(trouble: keyof Weather): boolean {
    return this.weather[trouble] > 0 || this.#everywhere[trouble] > 0 || this.#below?.has(trouble) === true;
  }

  /** Sends a request; `done` hears of the outcome once, in the process, unless that is dead. */
  call<Value>(call: Call<Value>, done: (outcome: Outcome<Value>) => void): void {
    const { proc } = call;
    this.#probe?.before(call);
    if (!proc.alive) return;
    let isSettled = false;
    const settle = (outcome: Outcome<Value>) => {
      if (isSettled) return;
      isSettled = true;
      cancel();
      done(outcome);
    };
    const cancel = proc.setTimer(call.timeoutMs, () => settle({ kind: 'timedOut' }));
    const fate = this.#fate(call.isWrite);
    if (fate.requestMs === LOST) return;
    this.#time.after(fate.requestMs, () => {
      const outcome = carriedOut(call.run, fate.error);
      if (fate.error === undefined) this.#probe?.after(call);
      if (fate.replyMs !== LOST) this.#time.after(fate.replyMs, () => proc.deliver(() => settle(outcome)));
    });
  }

  /** How late a watch event comes. */
  lagMs(): number {
    const random = this.#random;
    if (this.has('lag')) return random.chance(0.3) ? random.between(50, 1000) : random.between(2_000, 20_000);
    if (this.has('slow') || this.has('lossy')) return random.between(10, 3_000);
    return random.between(1, 60);
  }

  #fate(isWrite: boolean): Fate {
    const random = this.#random;
    if (this.has('cut')) {
      return random.chance(0.3)
        ? { requestMs: random.between(1, 50), replyMs: 1, error: 'connection' }
        : { requestMs: LOST, replyMs: LOST };
    }
    if (this.has('silent')) return { requestMs: random.between(1, 100), replyMs: LOST };
    if (isWrite && this.has('writesFail')) {
      return random.chance(0.6)
        ? { requestMs: random.between(1, 50), replyMs: random.between(1, 50), error: random.pick([503, 403]) }
        : random.chance(0.8)
          ? { requestMs: LOST, replyMs: LOST }
          : { requestMs: random.between(1, 50), replyMs: LOST };
    }
    if (this.has('lossy')) {
      const kind = random.next();
      if (kind < 0.15) return { requestMs: LOST, replyMs: LOST };
      if (kind < 0.25) return { requestMs: random.between(1_000, 20_000), replyMs: random.between(1, 500) };
      if (kind < 0.45) return { requestMs: random.between(1, 500), replyMs: LOST };
      if (kind < 0.55) return { requestMs: random.between(1, 100), replyMs: random.between(1, 100), error: 500 };
      return { requestMs: random.between(1, 500), replyMs: random.between(1, 500) };
    }
    // The slow half is as often the reply as the request: a write that counts already, whose sender does not know.
    if (this.has('slow')) {
      const [fast, slow] = [random.between(1, 100), random.between(100, 10_000)];
      return random.chance(0.7) ? { requestMs: fast, replyMs: slow } : { requestMs: slow, replyMs: fast };
    }
    return { requestMs: random.between(1, 15), replyMs: random.between(1, 15) };
  }
}

function carriedOut<Value>(run: () => Value, error: Fate['error']): Outcome<Value> {
  if (error === 'connection') return { kind: 'failed' };
  if (error !== undefined) return { kind: 'refused', refusal: new Refusal(error, 'InternalError', 'try again') };
  try {
    return { kind: 'ok', value: run() };
  } catch (err) {
    if (err instanceof Refusal) return { kind: 'refused', refusal: err };
    throw err;
  }
}
