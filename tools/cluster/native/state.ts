/** The record of a cluster: what the next `up` must know. One file per cluster, `cluster.json`. */
import { mkdir, readdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { MAX_CLUSTERS } from '../constants.ts';
import { withMachineLock } from '../machine-lock.ts';
import { clusterDir, clustersDir } from '../paths.ts';
import { freeIndex } from './layout.ts';

export interface ClusterRecord {
  readonly provider: 'native' | 'kind';
  readonly name: string;
  readonly index: number;
  readonly nodes: number;
  readonly kubernetesVersion: string;
  readonly fsync: boolean;
  /** Of the boot in which the cluster was made: its processes and mounts do not outlive it. */
  readonly bootId: string;
}

export async function readCluster(name: string): Promise<ClusterRecord | undefined> {
  try {
    return JSON.parse(await readFile(join(clusterDir(name), 'cluster.json'), 'utf8')) as ClusterRecord;
  } catch {
    return undefined;
  }
}

export async function allClusters(): Promise<readonly ClusterRecord[]> {
  const names = await readdir(clustersDir()).catch(() => []);
  const records = await Promise.all(names.map((name) => readCluster(name)));
  return records.filter((record) => record !== undefined);
}

export async function writeCluster(record: ClusterRecord): Promise<void> {
  const dir = clusterDir(record.name);
  await mkdir(dir, { recursive: true, mode: 0o700 });
  await writeFile(join(dir, 'cluster.json.new'), JSON.stringify(record, undefined, 2));
  await rename(join(dir, 'cluster.json.new'), join(dir, 'cluster.json'));
}

/** Gives the cluster the lowest free index and records it, so that no other cluster takes it. */
export function allocate(wanted: Omit<ClusterRecord, 'index'>): Promise<ClusterRecord> {
  return withMachineLock({ scope: clustersDir(), name: 'indexes' }, async () => {
    const taken = (await allClusters()).map((cluster) => cluster.index);
    const record = { ...wanted, index: freeIndex(taken, MAX_CLUSTERS) };
    await writeCluster(record);
    return record;
  });
}

/** Only one `up` or `down` of a cluster at a time. */
export function withClusterLock<T>(name: string, onWait: () => void, work: () => Promise<T>): Promise<T> {
  return withMachineLock({ scope: clusterDir(name), name: 'cluster', onWait }, work);
}
