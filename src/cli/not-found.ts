import type { DistributedLock } from '../api/generated/distributedlock.ts';
import { ApiError, isNotFound } from '../kube/errors.ts';
import { type Cluster, get, list } from './connect.ts';
import { isNotInstalled } from './explain.ts';
import { Failure } from './failure.ts';
import { some } from './text.ts';

/** Reads a lock. @throws Failure that says where there is one of that name, as far as this user may look. */
export async function readLock(cluster: Cluster, name: string): Promise<DistributedLock> {
  try {
    return await get<DistributedLock>(cluster, 'distributedlocks', name, cluster.namespace);
  } catch (err) {
    if (!isNotFound(err) || isNotInstalled(err)) throw err;
    const missing = `[NotFound] There is no lock '${name}' in namespace '${cluster.namespace}'.`;
    throw new Failure(`${missing} ${await elsewhere(cluster, name)}`, { cause: err });
  }
}

async function elsewhere(cluster: Cluster, name: string): Promise<string> {
  let all: readonly DistributedLock[];
  try {
    all = await list<DistributedLock>(cluster, 'distributedlocks');
  } catch (err) {
    if (!(err instanceof ApiError)) throw err;
    return 'Other namespaces cannot be read with these rights; choose one: -n NS.';
  }
  const same = all.filter((lock) => lock.metadata.name === name).map(({ metadata }) => metadata.namespace);
  if (same.length > 0) return `One of that name is in: ${some(same)}. Choose it: -n ${same[0]}`;
  const here = all
    .filter(({ metadata }) => metadata.namespace === cluster.namespace)
    .map(({ metadata }) => metadata.name);
  return `No other namespace has one of that name. Locks here: ${some(here) || 'none'}.`;
}
