import { SIDECAR_CONTAINER } from '../../../src/api/names.ts';
import { EndReason, EventReason } from '../../../src/api/reasons.ts';
import type { RawPod } from '../../../src/core/raw-pod.ts';
import { seconds, sleep } from '../../cluster/progress.ts';
import {
  awaitNext,
  checkEnd,
  checkOneAtATime,
  events,
  fillUp,
  type HandOver,
  type Next,
  staleSince,
} from '../hand-over.ts';
import { LEASE_SECONDS, PROGRAM, TAKEOVER_DELAY_SECONDS } from '../objects.ts';
import { type Holder, rowsOf, settledHolder } from '../sight.ts';
import { containerRuns, signalContainers } from '../signals.ts';
import { DemoFailed, type Stage } from '../stage.ts';

/** Program first, so that it runs for as long as it can. */
const CONTAINERS = [PROGRAM, SIDECAR_CONTAINER];
/** For the viewer, to see both at once. */
const LOOK_MILLISECONDS = 3000;
const STOP_SECONDS = 60;
const POLL_MILLISECONDS = 50;

export async function freezePod(stage: Stage): Promise<Next> {
  const from = await fillUp(stage);
  await stage.say(
    `Every process of Pod ${from.name} gets SIGSTOP, its sidecar too, as when a virtual machine is suspended. It cannot ` +
      `renew, so its lease runs out ${LEASE_SECONDS} s after its last renewal; ${TAKEOVER_DELAY_SECONDS} s more are left to the kubelet to stop it. ` +
      'But a frozen process cannot even be told.',
  );
  const pod = stage.pod(from.uid);
  const handOver = { from, blow: 'the freeze', at: Date.now(), apart: from.uid };
  await signalContainers(stage.cluster, pod, { containers: CONTAINERS, signal: 'SIGSTOP' });
  stage.watches.setFrozen(from.uid, true);
  const next = await awaitNext(stage, handOver);
  checkOneAtATime(stage, handOver);
  await checkEnd(stage, handOver, EndReason.Expired);
  stage.check(
    await containerRuns(stage.cluster, pod, PROGRAM),
    `two programs are alive: ${from.name} and ${next.to.name}`,
  );
  await stage.say(
    `${from.name} still believes that it holds. Only the token tells them apart: ${from.token} is stale, ${next.to.token} is ` +
      'the present one. (examples/paused-holder has a database that compares them.)',
  );
  await sleep(LOOK_MILLISECONDS);
  await wakeUp(stage, handOver, next.to);
  return next;
}

async function wakeUp(stage: Stage, handOver: HandOver, next: Holder): Promise<void> {
  const late = handOver.from;
  await stage.say(`Now ${late.name} wakes up (SIGCONT), in the middle of what it was doing.`);
  const pod = stage.pod(late.uid);
  const wokenAt = Date.now();
  stage.watches.setFrozen(late.uid, false);
  await signalContainers(stage.cluster, pod, { containers: CONTAINERS, signal: 'SIGCONT' });
  while (await containerRuns(stage.cluster, pod, PROGRAM)) {
    if (Date.now() - wokenAt > STOP_SECONDS * 1000) {
      throw new DemoFailed(`The program of ${late.name} still runs ${STOP_SECONDS} s after it woke up.`);
    }
    await sleep(POLL_MILLISECONDS);
  }
  const stopped = seconds(Date.now() - wokenAt);
  await stage.until(`${late.name} to wait in line again`, (sight) =>
    rowsOf(sight).some((row) => row.pod === late.name && row.why.includes('in line')) ? true : undefined,
  );
  const stale = staleSince(stage, handOver);
  const lost = (await events(stage, wokenAt)).find(
    ({ reason, regarding, note }) =>
      reason === EventReason.Lost && regarding.name === late.name && note.includes(`token ${late.token}`),
  );
  stage.result(
    `its program was stopped ${stopped} after it woke: its own sidecar saw that the lock was lost and ended, so the ` +
      'kubelet restarted the Pod, behind the gate. It waits in line again.',
  );
  const restarts = [pod, stage.pod(late.uid)].map(sidecarRestarts);
  stage.check(
    Number(restarts[1]) > Number(restarts[0]),
    `its sidecar was restarted (restart count ${restarts.join(' → ')}), and with it the whole Pod`,
  );
  if (lost !== undefined) await stage.say(`Its event: "${lost.note}"`);
  stage.check(
    stale.every(({ uid, at }) => uid === late.uid && at >= wokenAt),
    `awake, it printed its stale token ${stale.length === 1 ? 'once' : `${stale.length} times`} more: only a guard could refuse such writes`,
  );
  stage.check(
    settledHolder(stage.watches.sight())?.token === next.token,
    `${next.name} was not disturbed: it still holds with token ${next.token}, and it alone`,
  );
}

const sidecarRestarts = (pod: RawPod): number =>
  pod.status?.initContainerStatuses?.find(({ name }) => name === SIDECAR_CONTAINER)?.restartCount ?? 0;
