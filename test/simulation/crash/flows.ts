import { leaseName } from '../../../src/api/names.ts';
import type { LockWish, PodWish, Scenario } from '../run/scenario.ts';
import type { ProgramBehaviour } from '../world/program.ts';
import type { SidecarProcess } from '../world/sidecar.ts';
import { NAMESPACE, type World } from '../world/world.ts';

/** A course of events whose end is the same whoever is killed in between. */
export interface Flow {
  readonly name: string;
  readonly scenario: Scenario;
  readonly script: (world: World) => void;
}

const LOCK: LockWish = { name: 'billing', leaseDurationSeconds: 6, takeoverDelaySeconds: 0, createdAtMs: 100 };

const runs = (runsMs: number | undefined): ProgramBehaviour => ({
  runsMs,
  exitCode: 0,
  stopsMs: 100,
  writeEveryMs: 1_000,
  standsDownMs: 100,
});

const aPod = (name: string, over: Partial<PodWish> = {}): PodWish => ({
  name,
  lock: LOCK.name,
  node: 'node-0',
  mode: 'gate',
  restartPolicy: 'Always',
  graceSeconds: 5,
  programs: [runs(undefined)],
  gatedInit: undefined,
  createdAtMs: 200,
  ...over,
});

const scenario = (pods: readonly PodWish[], endMs: number): Scenario => ({
  seed: 1,
  nodes: [
    { name: 'node-0', rate: 1 },
    { name: 'node-1', rate: 1 },
  ],
  operators: [{ name: 'operator-0', rate: 1 }],
  locks: [LOCK],
  pods,
  tokenBase: '0',
  staleLists: false,
  faults: [],
  calmFromMs: endMs,
  endMs,
});

const b = { createdAtMs: 3_000 };
const elsewhere = { ...b, node: 'node-1' };

function deleteLock(world: World): void {
  const target = { namespace: NAMESPACE, name: LOCK.name };
  const who = { kind: 'user', name: 'alice' } as const;
  const annotations = { 'kilit.dev/force-delete': 'true' };
  world.attempt(() =>
    world.store.update('distributedlocks', target, (old) => ({ ...old, metadata: { ...old.metadata, annotations } }), {
      who,
    }),
  );
  world.attempt(() => world.store.delete('distributedlocks', target, { who }));
}

export const FLOWS: readonly Flow[] = [
  { name: 'one Pod takes the lock', scenario: scenario([aPod('a')], 40_000), script: () => {} },
  {
    name: 'Pods end one after another',
    scenario: scenario(
      ['a', 'b', 'c'].map((name, i) =>
        aPod(name, { restartPolicy: 'Never', programs: [runs(6_000)], createdAtMs: 200 + 500 * i }),
      ),
      110_000,
    ),
    script: () => {},
  },
  {
    name: 'a holder loses, releases and queues again; the other is deleted',
    scenario: scenario([aPod('a'), aPod('b', b)], 110_000),
    script(world) {
      world.time.at(12_000, () => sidecarOf(world, 'a')?.terminate());
      world.time.at(60_000, () => world.deletePod('b', 5));
    },
  },
  {
    name: 'a lock is deleted by force',
    scenario: scenario([aPod('a'), aPod('b', b)], 80_000),
    script: (world) => void world.time.at(12_000, () => deleteLock(world)),
  },
  {
    name: 'a lock is deleted by force and made again',
    scenario: scenario([aPod('a')], 100_000),
    script(world) {
      world.time.at(12_000, () => deleteLock(world));
      world.time.at(50_000, () => world.createLock(LOCK));
    },
  },
  {
    name: 'a holder is cut off, and comes back when the other is deleted',
    scenario: scenario([aPod('a'), aPod('b', elsewhere)], 120_000),
    script(world) {
      const link = world.kubelets.get('node-0')?.link;
      world.time.at(12_000, () => {
        if (link !== undefined) link.weather.cut += 1;
      });
      world.time.at(60_000, () => {
        if (link !== undefined) link.weather.cut -= 1;
      });
      world.time.at(75_000, () => world.deletePod('b', 5));
    },
  },
  {
    name: 'a grant is not confirmed, and passes on',
    scenario: scenario([aPod('a', { createdAtMs: 4_000 }), aPod('b', { ...elsewhere, createdAtMs: 6_000 })], 120_000),
    script(world) {
      pauseWhenStarted(world, 'a');
      world.time.at(75_000, () => world.deletePod('b', 5));
    },
  },
];

function sidecarOf(world: World, name: string): SidecarProcess | undefined {
  return [...world.podsOnNodes()].find(({ pod }) => pod.plan.name === name)?.pod.sidecar;
}

/** The sidecar of a Pod stands still from its start for half a minute. */
function pauseWhenStarted(world: World, name: string): void {
  const proc = sidecarOf(world, name)?.proc;
  if (proc === undefined) return void world.time.after(20, () => pauseWhenStarted(world, name));
  proc.pause();
  world.time.after(30_000, () => proc.resume());
}

/** What is left at the end, without times, numbers and revisions. */
export function endState(world: World): string {
  const lines: string[] = [];
  const lock = world.store.get('distributedlocks', NAMESPACE, LOCK.name);
  const status = (lock?.status ?? {}) as {
    readonly holder?: { readonly name: string };
    readonly waiters?: number;
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly reason: string }[];
  };
  const conditions = status.conditions?.map(({ type, status, reason }) => `${type}=${status}(${reason})`).join(' ');
  lines.push(
    lock === undefined
      ? 'no lock'
      : `lock: holder ${status.holder?.name ?? 'none'}, ${status.waiters} waiters, ${conditions}, finalizers ${lock.metadata.finalizers?.join()}`,
  );
  const lease = world.leaseOf(LOCK.name);
  const isConfirmed = lease?.spec?.renewTime !== lease?.spec?.acquireTime;
  lines.push(
    lease === undefined
      ? 'no Lease'
      : `Lease: ${lease.spec?.holderIdentity?.split('_')[0] || 'nobody'}, confirmed ${isConfirmed}, owned ${lease.metadata.ownerReferences?.[0]?.uid === lock?.metadata.uid}`,
  );
  for (const kind of ['roles', 'rolebindings'] as const) {
    const isThere = world.store.get(kind, NAMESPACE, leaseName(LOCK.name)) !== undefined;
    lines.push(`${kind}: ${isThere}`);
  }
  for (const pod of world.store.list('pods')) {
    const { annotations = {}, labels = {} } = pod.metadata;
    const token = annotations['kilit.dev/fencing-token'] !== undefined;
    const queued = annotations['kilit.dev/queued-at'] !== undefined;
    const { phase } = pod.status as { readonly phase?: string };
    const ended = phase === 'Succeeded' || phase === 'Failed';
    lines.push(
      `Pod ${pod.metadata.name}: ended ${ended}, token ${token}, queued ${queued}, leader ${labels['kilit.dev/leader'] ?? 'no'}`,
    );
  }
  return lines.join('\n');
}
