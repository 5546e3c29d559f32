/** The containers of a node as containerd's shims keep them on disk: readable while containerd and the kubelet are not. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { processesIn } from './cgroups.ts';
import type { NodeLayout } from './layout.ts';
import { processStat } from './proc.ts';

export interface Container {
  readonly id: string;
  readonly kind: 'sandbox' | 'container';
  /** Empty for the sandbox. */
  readonly name: string;
  /** Its init process; undefined when it ended. */
  readonly pid: number | undefined;
  readonly cgroup: string;
}

interface OciSpec {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly linux?: { readonly cgroupsPath?: string };
}

const CRI = 'io.kubernetes.cri.';

/** Where containerd keeps one folder per container that has a shim. */
export const tasksDir = (node: NodeLayout): string =>
  join(node.dir, 'containerd-state', 'io.containerd.runtime.v2.task', 'k8s.io');

/** Every container that has a shim and belongs to the Pod. */
export async function containersOfPod(node: NodeLayout, podUid: string): Promise<readonly Container[]> {
  const dir = tasksDir(node);
  const ids = await readdir(dir).catch(() => []);
  const found = await Promise.all(ids.map((id) => readContainer(join(dir, id), id, podUid)));
  return found.filter((container) => container !== undefined);
}

async function readContainer(dir: string, id: string, podUid: string): Promise<Container | undefined> {
  const config = await readFile(join(dir, 'config.json'), 'utf8').catch(() => undefined);
  if (config === undefined) return undefined;
  const { annotations = {}, linux = {} } = JSON.parse(config) as OciSpec;
  const cgroup = linux.cgroupsPath ?? '';
  if (!cgroup.includes(`/pod${podUid}/`)) return undefined;
  const pid = Number(await readFile(join(dir, 'init.pid'), 'utf8').catch(() => ''));
  const isSandbox = annotations[`${CRI}container-type`] === 'sandbox';
  const stat = pid > 0 ? await processStat(pid) : undefined;
  return {
    id,
    kind: isSandbox ? 'sandbox' : 'container',
    name: annotations[`${CRI}container-name`] ?? '',
    pid: stat === undefined || stat.state === 'Z' || stat.state === 'X' ? undefined : pid,
    cgroup,
  };
}

/** All processes of a running container, its init process first. */
export async function pidsOf(container: Container): Promise<readonly number[]> {
  const { pid } = container;
  if (pid === undefined) return [];
  const all = await processesIn(container.cgroup);
  return [pid, ...all.filter((other) => other !== pid)];
}

/** The containers of that name, running first. */
export async function containersByName(node: NodeLayout, podUid: string, name: string): Promise<readonly Container[]> {
  const all = await containersOfPod(node, podUid);
  const named = all.filter((container) => container.kind === 'container' && container.name === name);
  return named.toSorted((a, b) => Number(b.pid !== undefined) - Number(a.pid !== undefined));
}
