import { decide } from '../../../src/core/decide.ts';
import type { Now, Observed } from '../../../src/core/observed.ts';
import { applied } from '../../support/model.ts';

const MOST_PASSES = 20;

/** Decides and applies until nothing is left to do; says how it went on if it never ends. */
export function checkDecision(start: Observed, now: Now): string | undefined {
  let observed = start;
  const passes: string[] = [];
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    const { actions } = decide(observed, now);
    if (actions.length === 0) return undefined;
    passes.push(actions.map(({ kind }) => kind).join('+'));
    for (const action of actions) observed = applied(observed, action, now);
  }
  return passes.join(' → ');
}
