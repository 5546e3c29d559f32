import type { Violation } from '../check/violation.ts';
import { killSidecar } from '../run/inject.ts';
import type { Call, CallProbe } from '../world/network.ts';
import { World } from '../world/world.ts';
import { endState, type Flow } from './flows.ts';

export type Actor = 'operator' | 'sidecar';

/** Kills an actor just before it sends its nth write, or just after the API server has carried it out. */
export interface Crash {
  readonly actor: Actor;
  readonly write: number;
  readonly when: 'before' | 'after';
}

export interface FlowResult {
  /** The writes of each actor, in order. */
  readonly writes: Readonly<Record<Actor, readonly string[]>>;
  readonly end: string;
  readonly violation: Violation | undefined;
  readonly trace: readonly string[];
  readonly hasCrashed: boolean;
}

/** A restarted container needs about this long. */
const RESTART_MS = 500;
const COMEBACK_MS = 40_000;

export async function runFlow({ scenario, script }: Flow, crash?: Crash, traced = false): Promise<FlowResult> {
  const writes: Record<Actor, string[]> = { operator: [], sidecar: [] };
  const numbers = new WeakMap<Call<unknown>, number>();
  let hasCrashed = false;
  let crashedAt = 0;
  const strike = (call: Call<unknown>, when: Crash['when']) => {
    const actor = actorOf(call);
    if (actor === undefined || crash === undefined || hasCrashed) return;
    if (actor !== crash.actor || when !== crash.when || numbers.get(call) !== crash.write) return;
    hasCrashed = true;
    crashedAt = world.time.now();
    world.trace.note('crash', () => `${call.proc.name} ${when} ${call.what}`);
    kill(world, call);
  };
  const probe: CallProbe = {
    before(call) {
      const actor = actorOf(call);
      if (actor !== undefined) numbers.set(call, writes[actor].push(call.what) - 1);
      strike(call, 'before');
    },
    after: (call) => strike(call, 'after'),
  };
  const world = new World(scenario, { probe, traced });
  script(world);
  const isOver = () => world.checker.violation !== undefined;
  await world.time.run(scenario.endMs, isOver);
  // One that was killed near the end gets the time to come back.
  await world.time.run(Math.max(scenario.endMs, crashedAt + COMEBACK_MS), isOver);
  world.checker.finish();
  return { writes, end: endState(world), violation: world.checker.violation, trace: world.trace.lines, hasCrashed };
}

function actorOf({ isWrite, proc, what }: Call<unknown>): Actor | undefined {
  if (!isWrite || what.includes('/events')) return undefined;
  if (proc.name.startsWith('operator')) return 'operator';
  return proc.name.startsWith('sidecar') ? 'sidecar' : undefined;
}

function kill(world: World, { proc }: Call<unknown>): void {
  if (proc.name.startsWith('operator')) {
    proc.kill();
    world.time.after(RESTART_MS, () => world.startOperator(proc.name).lead(true));
    return;
  }
  const found = [...world.podsOnNodes()].find(({ pod }) => pod.sidecar?.proc === proc);
  if (found !== undefined) killSidecar(world, found);
}
