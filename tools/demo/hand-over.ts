/** What all acts share: enough waiters before, and the proof and the measured times after. */
import type { EndReason } from '../../src/api/reasons.ts';
import { WaitReason } from '../../src/api/reasons.ts';
import { seconds, sleep } from '../cluster/progress.ts';
import { firstPrint, type Printed, staleLines } from './history.ts';
import { LOCK, MADE_BY_DEMO, manifest, NAMESPACE, workerObject } from './objects.ts';
import { type Holder, hasEnded, holderOf, type Sight, settledHolder } from './sight.ts';
import type { Stage } from './stage.ts';

const PODS = 3;
const EVENT_TRIES = 50;

/** Removes Pods that have ended, and makes new ones until a holder and two waiters are there. */
export async function fillUp(stage: Stage): Promise<Holder> {
  const { pods } = stage.watches.sight();
  const ended = pods.filter(hasEnded).map((pod) => pod.metadata.name);
  // One of them may be going by itself just now.
  if (ended.length > 0) await deletePods(stage, ['--ignore-not-found', ...ended]);
  const alive = pods.filter((pod) => !hasEnded(pod) && pod.metadata.deletionTimestamp === undefined);
  for (let missing = PODS - alive.length; missing > 0; missing -= 1) await makeWorker(stage);
  return stage.until('one holder and two waiters', (sight) => {
    const holder = settledHolder(sight);
    return inLine(sight) === PODS - 1 && sight.pods.length === PODS ? holder : undefined;
  });
}

const inLine = ({ lock }: Sight): number =>
  (lock?.status?.queue ?? []).filter((waiter) => waiter.reason === WaitReason.Waiting).length;

let lastNumber = 0;

/** Names count up: no two Pods of one run share one. */
export async function makeWorker(stage: Stage): Promise<string> {
  lastNumber += 1;
  const name = `${MADE_BY_DEMO.app}-${lastNumber}`;
  await stage.cluster.kubectl(['create', '-f', '-'], { input: manifest(workerObject(name)) });
  return name;
}

export async function deletePods(stage: Stage, namesAndFlags: readonly string[]): Promise<void> {
  await stage.cluster.kubectl(['delete', 'pod', '--namespace', NAMESPACE, '--wait=false', ...namesAndFlags]);
}

export interface HandOver {
  readonly from: Holder;
  /** What was done to it, for example `the kill`. */
  readonly blow: string;
  /** When,  by the machine's clock, in milliseconds: the programs' lines carry the same. */
  readonly at: number;
  /** A former holder that is known to be alive. */
  readonly apart?: string;
}

export interface Next {
  readonly from: Holder;
  readonly to: Holder;
  /** From the blow to the first line of the next program. */
  readonly afterMilliseconds: number;
}

/** Waits for the next holder, tells it with the times since the blow, and checks what every hand-over must keep. */
export async function awaitNext(stage: Stage, { from, blow, at, apart }: HandOver): Promise<Next> {
  const granted = await stage.until('the next grant', (sight) => {
    const holder = holderOf(sight);
    return holder !== undefined && holder.token !== from.token ? { holder, after: Date.now() - at } : undefined;
  });
  const { holder } = granted;
  await stage.until('its program', (sight) => (settledHolder(sight, apart)?.uid === holder.uid ? true : undefined));
  const ran = (firstPrint(stage.watches.history(), holder.token) ?? Number.NaN) - at;
  stage.result(
    `${holder.name} holds with token ${holder.token}: granted ${seconds(granted.after)} after ${blow}, its program ran after ${seconds(ran)}.`,
  );
  stage.check(
    BigInt(holder.token) > BigInt(from.token),
    `the token grew: ${from.token} → ${holder.token}; one Pod holds, and only its program prints that token`,
  );
  return { from, to: holder, afterMilliseconds: ran };
}

/** The lines printed since the blow although a greater token was out. */
export const staleSince = (stage: Stage, { at }: HandOver): readonly Printed[] =>
  staleLines(stage.watches.history().filter((line) => line.at >= at));

/** The programs' own lines are the witness, not the lock. */
export function checkOneAtATime(stage: Stage, handOver: HandOver): void {
  stage.check(
    staleSince(stage, handOver).length === 0,
    'one program at a time: nobody printed an older token after the new one',
  );
}

/** Why the operator ended the grant, by its own event. */
export async function checkEnd(stage: Stage, { from, at }: HandOver, wanted: EndReason): Promise<void> {
  let seen: readonly string[] = [];
  for (let tries = 0; tries < EVENT_TRIES && seen.length === 0; tries += 1) {
    if (tries > 0) await sleep(200);
    seen = (await events(stage, at))
      .filter(({ regarding, note }) => regarding.name === LOCK && note.startsWith(`Pod ${from.name}: `))
      .map(({ reason }) => reason);
  }
  stage.check(seen.includes(wanted), `the operator's event gives the reason ${seen.join(', ') || '(none)'}`);
}

export interface KubeEvent {
  readonly reason: string;
  readonly note: string;
  readonly eventTime: string;
  readonly regarding: { readonly name: string };
}

/** The events of the namespace since a time. */
export async function events(stage: Stage, since: number): Promise<readonly KubeEvent[]> {
  const text = await stage.cluster.kubectl(['get', 'events.events.k8s.io', '-n', NAMESPACE, '-o', 'json']);
  const { items } = JSON.parse(text) as { readonly items: readonly Partial<KubeEvent>[] };
  return items.filter(
    (event): event is KubeEvent =>
      event.note !== undefined && event.regarding !== undefined && Date.parse(event.eventTime ?? '') >= since,
  );
}
