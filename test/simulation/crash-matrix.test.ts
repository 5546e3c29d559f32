import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FLOWS } from './crash/flows.ts';
import { type Actor, type Crash, type FlowResult, runFlow } from './crash/matrix.ts';

const counts: object[] = [];
afterAll(() => console.table(counts));

describe.each(FLOWS)('$name', (flow) => {
  let undisturbed: FlowResult;
  beforeAll(async () => {
    undisturbed = await runFlow(flow);
  });

  it('violates nothing undisturbed', () => {
    expect(undisturbed.violation).toBeUndefined();
  });

  it.each<Actor>(['operator', 'sidecar'])(
    'comes to the same end when the %s is killed before or after any of its writes',
    async (actor) => {
      const writes = undisturbed.writes[actor];
      expect(writes.length).toBeGreaterThan(5);
      let crashes = 0;
      const faults: string[] = [];
      for (const [write, what] of writes.entries()) {
        for (const when of ['before', 'after'] as const) {
          const crash: Crash = { actor, write, when };
          const { end, violation, hasCrashed } = await runFlow(flow, crash);
          const fault = violation?.text ?? (end === undisturbed.end ? undefined : end);
          if (fault !== undefined) faults.push(`killed ${when} write ${write}, ${what}: ${fault}`);
          crashes += hasCrashed ? 1 : 0;
        }
      }
      expect(faults).toEqual([]);
      counts.push({ flow: flow.name, actor, writes: writes.length, crashes });
      // A write that the network loses is never carried out, so there is nothing after it.
      expect(crashes).toBeGreaterThan(1.7 * writes.length);
    },
  );
});
