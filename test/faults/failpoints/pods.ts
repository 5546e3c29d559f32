/** Faults of a holder's Pod: its processes, its network, its files, its object. */
import { appendFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SIDECAR_CONTAINER } from '../../../src/api/names.ts';
import type { ClusterNode } from '../../../tools/cluster/index.ts';
import { type Failpoint, type Heal, nothingToHeal, type PodFault } from './failpoint.ts';
import { runVolume } from './run-volume.ts';

type Which = 'program' | 'sidecar' | 'pod';
const CONTAINERS: Readonly<Record<Which, readonly string[]>> = {
  program: ['app'],
  sidecar: [SIDECAR_CONTAINER],
  pod: ['app', SIDECAR_CONTAINER],
};

/** Signals all processes of some containers; what has ended meanwhile is fine. */
export async function signal(
  { node, uid }: { readonly node: ClusterNode; readonly uid: string },
  containers: readonly string[],
  name: NodeJS.Signals,
): Promise<readonly number[]> {
  const pids = await node.pidsOfPod(uid);
  const hit = containers.flatMap((container) => pids.get(container) ?? []);
  for (const pid of hit) send(pid, name);
  return hit;
}

/** PIDs are not used again within the time of a fault: there are 4 million. */
export function send(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch {
    // It ended meanwhile.
  }
}

const freeze = (which: Which): Failpoint => ({
  name: `SIGSTOP ${which}`,
  level: 'pod',
  lasts: 'over-lease',
  async inflict({ holder }) {
    const pids = await signal(holder, CONTAINERS[which], 'SIGSTOP');
    return async () => pids.forEach((pid) => send(pid, 'SIGCONT'));
  },
});

const kill = (which: Which): Failpoint => ({
  name: `SIGKILL ${which}`,
  level: 'pod',
  lasts: 'no-time',
  async inflict({ holder }) {
    await signal(holder, CONTAINERS[which], 'SIGKILL');
    return nothingToHeal;
  },
});

/**
 * Its packets are dropped; connections stay open. The database has the same address as the API server: what a program sent
 * arrives after the healing, maybe after its death.
 */
async function cutOff({ holder }: PodFault): Promise<Heal> {
  await holder.node.cutPod(holder.uid);
  return () => holder.node.healPod(holder.uid);
}

/** Of holder and waiters; then the holder is made to lose, so that the next one has no room to write its token. */
async function fillRunDir({ lock, traffic, cluster, holder }: PodFault): Promise<Heal> {
  const fillers = traffic
    .podsOf(lock)
    .map(({ metadata, spec }) => join(runVolume(cluster, spec.nodeName ?? '', metadata.uid), 'filler'));
  for (const path of fillers) await fill(path);
  await signal(holder, [SIDECAR_CONTAINER], 'SIGKILL');
  return () => Promise.all(fillers.map((path) => rm(path, { force: true })));
}

/** It holds 1 MiB. */
async function fill(path: string): Promise<void> {
  for (const bytes of [2 ** 20, 4096, 1]) {
    await appendFile(path, Buffer.alloc(bytes)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOSPC') throw error;
    });
  }
}

async function deletePod({ kube, traffic, holder }: PodFault, query: string): Promise<Heal> {
  await kube.must('DELETE', `/api/v1/namespaces/${traffic.namespace}/pods/${holder.pod}${query}`);
  return nothingToHeal;
}

export const POD_FAILPOINTS: readonly Failpoint[] = [
  freeze('program'),
  freeze('sidecar'),
  freeze('pod'),
  kill('program'),
  kill('sidecar'),
  kill('pod'),
  { name: 'Pod cut from API server', level: 'pod', lasts: 'over-lease', inflict: cutOff },
  { name: 'full /run/kilit', level: 'pod', lasts: 'over-lease', inflict: fillRunDir },
  { name: 'Pod deleted', level: 'pod', lasts: 'no-time', inflict: (fault) => deletePod(fault, '') },
  {
    name: 'Pod force-deleted',
    level: 'pod',
    lasts: 'no-time',
    inflict: (fault) => deletePod(fault, '?gracePeriodSeconds=0'),
  },
];
