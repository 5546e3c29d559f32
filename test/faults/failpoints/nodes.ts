/** Faults of a node: its kubelet, its containerd, its network, its object. */
import { readdirSync, readFileSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { run } from '../../../tools/cluster/exec.ts';
import type { ClusterNode, Component } from '../../../tools/cluster/index.ts';
import { waitFor } from '../../support/wait.ts';
import type { ClusterFault, Failpoint, Heal, Lasts } from './failpoint.ts';
import { busyNode, loseSome } from './lose.ts';
import { send } from './pods.ts';

/** A fault of one program of a node on which somebody holds a lock; some of those there lose it meanwhile. */
const ofProgram = (
  name: string,
  program: 'kubelet' | 'containerd',
  options: { readonly lasts?: Lasts; readonly act: (component: Component) => Promise<Heal> },
): Failpoint => ({
  name,
  level: 'cluster',
  lasts: options.lasts ?? 'over-lease',
  async inflict(fault) {
    const node = busyNode(fault);
    const heal = await options.act(fault.cluster.component(`${program}-${node.name}`));
    await loseSome(fault, node);
    return heal;
  },
});

const freeze = async (component: Component): Promise<Heal> => {
  await component.pause();
  return () => component.resume();
};

const kill = async (component: Component): Promise<Heal> => {
  await component.kill();
  return () => component.restart();
};

const restart = async (component: Component): Promise<Heal> => {
  await component.restart();
  return async () => {};
};

async function cutOff(fault: ClusterFault): Promise<Heal> {
  const node = busyNode(fault);
  await node.cutNetwork();
  return () => node.healNetwork();
}

/** A kubelet whose node is gone does not register it again until it is restarted. */
async function deleteNode(fault: ClusterFault): Promise<Heal> {
  const node = busyNode(fault);
  await fault.kube.must('DELETE', `/api/v1/nodes/${node.name}`);
  return async () => {
    await node.restartKubelet();
    await waitFor(`node ${node.name} to be Ready`, async () => {
      const { status } = await fault.kube.must('GET', `/api/v1/nodes/${node.name}`);
      const { conditions = [] } = status as { conditions?: { type: string; status: string }[] };
      return conditions.some((condition) => condition.type === 'Ready' && condition.status === 'True');
    });
  };
}

/**
 * containerd forgets the tasks of all contenders on a node: their processes run on, and nobody can stop them any more.
 *
 * Their folders are moved away while it is dead; what is left of them is ended at last, and the kubelet restarted: its long
 * startup probe of a sandbox that is gone would else end by TCP's keepalive alone, 150 s later, and the next fault would
 * find a Pod that is granted its lock and not started.
 */
async function loseState(fault: ClusterFault): Promise<Heal> {
  const node = busyNode(fault);
  const containerd = fault.cluster.component(`containerd-${node.name}`);
  const dir = join(dirname(fault.cluster.kubeconfigPath), node.name);
  const tasks = join(dir, 'containerd-state/io.containerd.runtime.v2.task/k8s.io');
  const lost = join(dir, 'lost');
  const uids = fault.traffic.locks
    .flatMap((lock) => fault.traffic.podsOf(lock))
    .filter(({ spec }) => spec.nodeName === node.name)
    .map(({ metadata }) => metadata.uid);
  const orphans = await pidsOf(node, uids);
  await containerd.kill();
  await mkdir(lost, { recursive: true });
  const mine = readdirSync(tasks).filter((id) =>
    uids.some((uid) => readConfig(join(tasks, id)).includes(`/pod${uid}/`)),
  );
  const shims = mine.map((id) => parentOf(join(tasks, id)));
  for (const id of mine) await rename(join(tasks, id), join(lost, id));
  await containerd.restart();
  return async () => {
    for (const pid of [...orphans, ...shims]) if (pid > 1) send(pid, 'SIGKILL');
    for (const id of mine) await run('umount', ['-l', join(lost, id, 'rootfs')]).catch(() => {});
    await rm(lost, { recursive: true, force: true });
    await node.restartKubelet();
  };
}

async function pidsOf(node: ClusterNode, uids: readonly string[]): Promise<readonly number[]> {
  const all = await Promise.all(uids.map((uid) => node.pidsOfPod(uid)));
  return all.flatMap((pids) => [...pids.values()].flat());
}

function readConfig(folder: string): string {
  try {
    return readFileSync(join(folder, 'config.json'), 'utf8');
  } catch {
    return '';
  }
}

/** The shim of a task; 0 if it has ended. */
function parentOf(folder: string): number {
  try {
    const pid = readFileSync(join(folder, 'init.pid'), 'utf8');
    return Number(/^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0);
  } catch {
    return 0;
  }
}

export const NODE_FAILPOINTS: readonly Failpoint[] = [
  ofProgram('SIGSTOP kubelet', 'kubelet', { act: freeze }),
  ofProgram('SIGKILL kubelet', 'kubelet', { act: kill }),
  ofProgram('kubelet restart', 'kubelet', { act: restart, lasts: 'no-time' }),
  ofProgram('SIGSTOP containerd', 'containerd', { act: freeze }),
  ofProgram('SIGKILL containerd', 'containerd', { act: kill }),
  { name: 'containerd state lost', level: 'cluster', lasts: 'over-lease', inflict: loseState },
  { name: 'node cut from API server', level: 'cluster', lasts: 'over-lease', inflict: cutOff },
  { name: 'node deleted', level: 'cluster', lasts: 'over-a-minute', inflict: deleteNode },
];
