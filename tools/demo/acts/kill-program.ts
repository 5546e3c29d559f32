import { EndReason } from '../../../src/api/reasons.ts';
import { awaitNext, checkEnd, checkOneAtATime, fillUp, type Next } from '../hand-over.ts';
import { PROGRAM } from '../objects.ts';
import { signalContainers } from '../signals.ts';
import type { Stage } from '../stage.ts';

export async function killProgram(stage: Stage): Promise<Next> {
  const from = await fillUp(stage);
  await stage.say(
    `The program of ${from.name} gets SIGKILL, as when memory runs out. Its Pod is not restarted (restartPolicy: Never), ` +
      'so its death is certain once the kubelet reports it: nobody has to wait until the lease runs out.',
  );
  const handOver = { from, blow: 'the kill', at: Date.now() };
  await signalContainers(stage.cluster, stage.pod(from.uid), { containers: [PROGRAM], signal: 'SIGKILL' });
  const next = await awaitNext(stage, handOver);
  checkOneAtATime(stage, handOver);
  await checkEnd(stage, handOver, EndReason.ConfirmedDeath);
  return next;
}
