import { EndReason } from '../../../src/api/reasons.ts';
import { awaitNext, checkEnd, checkOneAtATime, deletePods, fillUp, type Next } from '../hand-over.ts';
import type { Stage } from '../stage.ts';

export async function deletePod(stage: Stage): Promise<Next> {
  const from = await fillUp(stage);
  await stage.say(
    `Pod ${from.name} is deleted, as by a drain or a person. A deletion alone proves nothing: its program may still be ` +
      'finishing a write. So it keeps the lock until every container has ended, and only then the next one starts.',
  );
  const handOver = { from, blow: 'the deletion', at: Date.now() };
  await deletePods(stage, [from.name]);
  const next = await awaitNext(stage, handOver);
  checkOneAtATime(stage, handOver);
  await checkEnd(stage, handOver, EndReason.ConfirmedDeath);
  return next;
}
