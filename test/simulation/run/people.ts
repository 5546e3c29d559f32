import { REQUEST_ANNOTATION, type RequestKind } from '../../../src/core/requests.ts';
import { ADMINISTRATOR } from '../api/policies.ts';
import { createRandom } from '../world/random.ts';
import { NAMESPACE, type World } from '../world/world.ts';
import type { Fault } from './faults.ts';
import { drawPod, drawTerms } from './scenario.ts';

const administrator = { kind: 'user', name: ADMINISTRATOR } as const;

/** What people do while locks are held: none of it is a fault, all of it must go well. */

/** `kubectl annotate dlock`: the grant that the status shows is to be broken, or handed over. */
export function ask(world: World, lock: string, kind: RequestKind): void {
  const target = { namespace: NAMESPACE, name: lock };
  world.attempt(() =>
    world.store.update(
      'distributedlocks',
      target,
      (old) => {
        const token = (old.status as { readonly fencingToken?: string } | undefined)?.fencingToken ?? '0';
        const text = JSON.stringify({ token, by: administrator.name, reason: 'because' });
        const annotations = { ...old.metadata.annotations, [REQUEST_ANNOTATION[kind]]: text };
        return token === '0' ? old : { ...old, metadata: { ...old.metadata, annotations } };
      },
      { who: administrator },
    ),
  );
}

/** A new version of a Deployment: its new Pod is made at once, an old one is deleted some time later, if at all. */
export function rollOut(world: World, { dice, index, forMs }: Fault): void {
  const { scenario } = world;
  const random = createRandom(scenario.seed, `rollout ${index}`);
  const lock = scenario.locks[Math.floor(dice * scenario.locks.length)]?.name ?? '';
  const wish = drawPod(random, { lock, nodes: scenario.nodes, index: 30 + index, faultyMs: 60_000, isTight: false });
  const name = `${lock}-app`;
  world.createPod({ ...wish, restartPolicy: 'Always', workload: { name, revision: `r${index}` } });
  const former = [...world.podsOnNodes()].find(
    ({ pod }) => pod.plan.workload?.name === name && pod.plan.name !== wish.name,
  );
  if (former === undefined || dice < 0.4) return;
  world.time.after(forMs, () => world.deletePod(former.pod.plan.name, former.pod.plan.graceSeconds));
}

/** Other terms for the grants to come. */
export function editTerms(world: World, { index, dice }: Fault): void {
  const lock = world.scenario.locks[Math.floor(dice * world.scenario.locks.length)];
  if (lock === undefined) return;
  const { leaseDurationSeconds, takeoverDelaySeconds } = lock;
  const terms = drawTerms(createRandom(world.scenario.seed, `terms ${index}`));
  editSpec(world, lock.name, { leaseDurationSeconds, takeoverDelaySeconds, ...terms });
}

const editSpec = (world: World, name: string, spec: Readonly<Record<string, unknown>>): boolean =>
  world.attempt(() =>
    world.store.update('distributedlocks', { namespace: NAMESPACE, name }, (old) => ({ ...old, spec }), {
      who: administrator,
    }),
  );

/** How often somebody looks after what only a person can end, once nothing fails any more. */
const ROUND_MS = 15_000;

/**
 * After the faults: nobody holds for a set time any more, or locks would go round for ever; and a grant that only the
 * confirmed end of its Pod may end (`takeover: PodGone`) is broken where that end cannot be seen.
 */
export function comeToRest(world: World): void {
  let isFirst = true;
  const round = () => {
    for (const { name } of world.scenario.locks) {
      const { maxHoldSeconds, ...spec } = world.store.get('distributedlocks', NAMESPACE, name)?.spec ?? {};
      if (maxHoldSeconds !== undefined) editSpec(world, name, spec);
      if (!isFirst && waitsForDeath(world, name)) ask(world, name, 'break');
    }
    isFirst = false;
    world.time.after(ROUND_MS, round);
  };
  round();
}

interface LockStatus {
  readonly terms?: { readonly takeover?: string };
  readonly conditions?: readonly { readonly type: string; readonly reason: string }[];
}

function waitsForDeath(world: World, name: string): boolean {
  const lock = world.store.get('distributedlocks', NAMESPACE, name);
  const { terms, conditions } = (lock?.status ?? {}) as LockStatus;
  const held = conditions?.find(({ type }) => type === 'Held')?.reason ?? '';
  return terms?.takeover === 'PodGone' && ['HolderSilent', 'PreviousHolder'].includes(held);
}
