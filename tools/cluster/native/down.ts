/** Ends a native cluster and removes all it left: processes, mounts, cgroups, namespaces, links, files. */
import { readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { MAX_NODES } from '../constants.ts';
import { succeeds } from '../exec.ts';
import { clusterDir } from '../paths.ts';
import { step, waitFor } from '../progress.ts';
import type { OnProgress } from '../types.ts';
import { processesIn, removeCgroup } from './cgroups.ts';
import { tasksDir } from './containers.ts';
import { removeNetwork } from './network.ts';
import { type NativeParts, nativeParts } from './parts.ts';
import { allProcesses, mountsBelow, signalProcess } from './proc.ts';
import type { Program } from './program.ts';
import type { ClusterRecord } from './state.ts';
import { readCluster, withClusterLock } from './state.ts';

const END_SECONDS = 20;

/** Harmless when there is no such cluster. `locked`: the caller holds the cluster's lock. */
export async function down(
  name: string,
  onProgress: OnProgress,
  options: { readonly locked?: boolean } = {},
): Promise<void> {
  const work = (): Promise<void> => step(onProgress, `end cluster '${name}'`, () => end(name));
  if (options.locked === true) return work();
  return withClusterLock(
    name,
    () => onProgress(`…      waiting for another process that works on cluster '${name}'`),
    work,
  );
}

async function end(name: string): Promise<void> {
  const dir = clusterDir(name);
  const parts = nativeParts(await whatCanBeThere(name), {});
  const sockets = await shimSockets(parts);
  await endProcesses(parts, dir);
  for (const socket of sockets) await rm(socket, { force: true });
  await unmountBelow(dir);
  const nodes = parts.nodes.map(({ layout }) => layout);
  await removeNetwork(parts.layout, nodes);
  for (const node of nodes) await removeCgroup(node.cgroup);
  await rm(dir, { recursive: true, force: true });
}

/** More nodes than recorded, and a record that is missing: a harness may have died at any point. */
async function whatCanBeThere(name: string): Promise<ClusterRecord> {
  const unknown = { provider: 'native', index: -1, kubernetesVersion: '', fsync: false, bootId: '' } as const;
  return { ...unknown, ...(await readCluster(name)), name, nodes: MAX_NODES };
}

/** Kubelets first, or they would start again what is ended; the API server and etcd last. */
async function endProcesses(parts: NativeParts, dir: string): Promise<void> {
  const nodes = parts.nodes.map(({ programs }) => programs);
  await Promise.all(nodes.flatMap(({ kubelet, kubeProxy }) => [kill(kubelet), kill(kubeProxy)]));
  const pods = async (): Promise<readonly number[]> =>
    (await Promise.all(parts.nodes.map(({ layout }) => processesIn(layout.cgroup)))).flat();
  for (const pid of await pods()) signalProcess(pid, 'SIGKILL');
  await Promise.all(nodes.map(({ containerd }) => kill(containerd)));
  await Promise.all(parts.controlPlane.toReversed().map((program) => kill(program)));
  await waitFor(
    async () => {
      const left = [...(await pods()), ...(await strays(dir))];
      for (const pid of left) signalProcess(pid, 'SIGKILL');
      return left.length === 0;
    },
    { what: `every process of ${dir} ends`, timeoutSeconds: END_SECONDS, everyMilliseconds: 50 },
  );
}

/** Nothing is worth keeping: SIGKILL is fast, and etcd's files are deleted next. */
const kill = (program: Program): Promise<void> => program.kill();

/**
 * Processes that name this cluster's folder in their arguments: containerd's shims, and programs that a harness
 * started but died before it could record them.
 */
async function strays(dir: string): Promise<readonly number[]> {
  const programs = /\/?(containerd-shim-[a-z0-9-]+|containerd|kubelet|kube-[a-z-]+|etcd|runc)$/;
  const all = await allProcesses();
  const mine = all.filter(({ argv }) => programs.test(argv[0] ?? '') && argv.some((arg) => arg.includes(`${dir}/`)));
  return mine.map(({ pid }) => pid);
}

/** A shim that was killed leaves its socket in containerd's shared folder; its address stands beside the container. */
async function shimSockets(parts: NativeParts): Promise<readonly string[]> {
  const addresses = parts.nodes.map(async ({ layout }) => {
    const dir = tasksDir(layout);
    const ids = await readdir(dir).catch(() => []);
    return Promise.all(ids.map((id) => readFile(join(dir, id, 'address'), 'utf8').catch(() => '')));
  });
  const all = (await Promise.all(addresses)).flat().map((address) => address.trim().replace(/^unix:\/\//, ''));
  return [...new Set(all)].filter((path) => path.startsWith('/run/containerd/s/'));
}

async function unmountBelow(dir: string): Promise<void> {
  const mounts = async (): Promise<readonly string[]> =>
    mountsBelow(await readFile('/proc/self/mountinfo', 'utf8'), dir);
  for (const path of await mounts()) await succeeds('umount', ['-l', path]);
  const left = await mounts();
  // A mount may lead to files outside: deleting through it would delete them.
  if (left.length > 0) throw new Error(`Cannot unmount ${left.join(', ')}; ${dir} is kept. Unmount them and repeat.`);
}
