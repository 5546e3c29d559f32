import type { Violation } from '../check/violation.ts';
import { World } from '../world/world.ts';
import { watchRest } from './end.ts';
import { electOne, scheduleFaults } from './inject.ts';
import { comeToRest } from './people.ts';
import type { Scenario } from './scenario.ts';

export interface RunResult {
  readonly violation: Violation | undefined;
  readonly trace: readonly string[];
  readonly events: number;
  readonly grants: number;
  /** Writes with an old token that the guard refused, and that the unguarded history took. */
  readonly refused: number;
}

/** A run has a few thousand; far more are a loop. */
const MOST_EVENTS = 60_000;

/** One run: what the scenario says, then quiet, then the checks of the end. */
export async function runScenario(scenario: Scenario, options: { readonly traced?: boolean } = {}): Promise<RunResult> {
  const world = new World(scenario, options);
  scheduleFaults(world);
  world.time.at(scenario.calmFromMs, () => {
    electOne(world);
    comeToRest(world);
  });
  const rest = watchRest(world);
  await world.time.run(scenario.endMs, () => {
    if (world.time.events > MOST_EVENTS) world.checker.fail('nothing is written for ever', `${MOST_EVENTS} events`);
    const isDone = world.time.now() > scenario.calmFromMs && world.time.events % 16 === 0 && rest.isReached();
    return isDone || world.checker.violation !== undefined;
  });
  if (world.checker.violation === undefined) {
    rest.check();
    world.checker.finish();
  }
  const histories = [...world.histories.values()];
  return {
    violation: world.checker.violation,
    trace: world.trace.lines,
    events: world.time.events,
    grants: scenario.locks.reduce((sum, { name }) => sum + world.checker.lock(name).grants.size, 0),
    refused: histories.reduce((sum, { refused }) => sum + refused, 0),
  };
}
