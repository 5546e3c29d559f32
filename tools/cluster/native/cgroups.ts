/** The cgroups of a node, on a machine with cgroup v1, v2 or both. */
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const ROOT = '/sys/fs/cgroup';

/** Where the controllers are mounted: one folder on v2; one per controller on v1. */
async function hierarchies(): Promise<readonly string[]> {
  if (existsSync(join(ROOT, 'cgroup.controllers'))) return [ROOT];
  const names = await readdir(ROOT);
  return names.map((name) => join(ROOT, name)).filter((dir) => existsSync(join(dir, 'cgroup.procs')));
}

/** Makes the kubelet's root cgroup in every hierarchy. A v1 cpuset takes no process before it has CPUs and memory. */
export async function ensureCgroup(name: string): Promise<void> {
  for (const dir of await hierarchies()) {
    await mkdir(join(dir, name), { recursive: true });
    for (const file of ['cpuset.cpus', 'cpuset.mems']) {
      const parent = join(dir, file);
      if (dir === ROOT || !existsSync(parent)) continue;
      await writeFile(join(dir, name, file), await readFile(parent, 'utf8'));
    }
    if (dir === ROOT) await enableControllers(dir, name);
  }
}

async function enableControllers(dir: string, name: string): Promise<void> {
  const controllers = (await readFile(join(dir, 'cgroup.controllers'), 'utf8')).trim().split(' ');
  for (const target of [dir, join(dir, name)]) {
    const file = join(target, 'cgroup.subtree_control');
    for (const controller of controllers) await writeFile(file, `+${controller}`).catch(() => {});
  }
}

/** Every process in a cgroup and below. `path` is as in a container's `cgroupsPath`. */
export async function processesIn(path: string): Promise<readonly number[]> {
  const pids = new Set<number>();
  for (const dir of await hierarchies()) for (const pid of await walk(join(dir, path))) pids.add(pid);
  return [...pids];
}

async function walk(dir: string): Promise<readonly number[]> {
  const text = await readFile(join(dir, 'cgroup.procs'), 'utf8').catch(() => '');
  const here = text
    .split('\n')
    .filter((line) => line !== '')
    .map(Number);
  const below = await Promise.all((await subfolders(dir)).map((child) => walk(child)));
  return [...here, ...below.flat()];
}

async function subfolders(dir: string): Promise<readonly string[]> {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isDirectory()).map((entry) => join(dir, entry.name));
}

/** Removes a cgroup and those below; one that still has a process stays. */
export async function removeCgroup(name: string): Promise<void> {
  for (const dir of await hierarchies()) await removeTree(join(dir, name));
}

async function removeTree(dir: string): Promise<void> {
  for (const child of await subfolders(dir)) await removeTree(child);
  await rmdir(dir).catch(() => {});
}
