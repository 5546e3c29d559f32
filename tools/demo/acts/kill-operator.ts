import type { RawPod } from '../../../src/core/raw-pod.ts';
import { seconds } from '../../cluster/progress.ts';
import { awaitNext, checkOneAtATime, deletePods, fillUp, makeWorker, type Next } from '../hand-over.ts';
import { leaderOf, OPERATOR_CONTAINER, OPERATOR_NAMESPACE } from '../operator.ts';
import { holderOf, rowsOf } from '../sight.ts';
import { signalContainers } from '../signals.ts';
import type { Stage } from '../stage.ts';

export async function killOperator(stage: Stage): Promise<Next> {
  const from = await fillUp(stage);
  const leader = await stage.until('an operator that leads', leaderOf);
  await stage.say(
    `The operator that leads, ${leader.pod}, gets SIGKILL. Until another leads nobody can be granted anything. But what is ` +
      'held stays held: the sidecar renews its lease itself, straight at the API server.',
  );
  const operator = await readPod(stage, leader.pod);
  const killedAt = Date.now();
  await signalContainers(stage.cluster, operator, { containers: [OPERATOR_CONTAINER], signal: 'SIGKILL' });
  stage.leaderKilled(leader);
  const renewTime = stage.watches.sight().lease?.spec?.renewTime;
  await stage.until('a renewal without an operator', (sight) =>
    sight.lease?.spec?.renewTime !== renewTime && holderOf(sight)?.token === from.token ? true : undefined,
  );
  stage.check(leaderOf(stage.watches.sight())?.since === leader.since, `${from.name} renewed while no operator led`);

  await stage.say(`Now Pod ${from.name} is deleted and a new Pod made, still without an operator.`);
  const handOver = { from, blow: 'the deletion', at: Date.now() };
  await deletePods(stage, [from.name]);
  const made = await makeWorker(stage);
  const now = await stage.until('another operator to lead', (sight) => {
    const leads = leaderOf(sight);
    return leads !== undefined && leads.since !== leader.since ? { ...leads, after: Date.now() - killedAt } : undefined;
  });
  const again = now.pod === leader.pod ? ' (the same Pod: the kubelet had restarted its container)' : '';
  stage.result(`${now.pod} leads ${seconds(now.after)} after the kill${again}.`);
  const next = await awaitNext(stage, handOver);
  checkOneAtATime(stage, handOver);
  await stage.until(`${made} to be in line`, (sight) =>
    rowsOf(sight).some((row) => row.pod === made && row.why.includes('in line')) ? true : undefined,
  );
  stage.check(true, `${made}, made without an operator, was gated all the same: the API server injects the sidecar`);
  return { ...next, afterMilliseconds: next.afterMilliseconds + (handOver.at - killedAt) };
}

async function readPod(stage: Stage, name: string): Promise<RawPod> {
  return JSON.parse(
    await stage.cluster.kubectl(['get', 'pod', name, '-n', OPERATOR_NAMESPACE, '-o', 'json']),
  ) as RawPod;
}
