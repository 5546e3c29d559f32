import type { DistributedLock } from '../../api/generated/distributedlock.ts';
import { TOKEN_BASE_ANNOTATION } from '../../api/names.ts';
import type { RawLease } from '../../core/lease.ts';
import { parseTokenBase } from '../../core/token.ts';
import { isNotFound } from '../../kube/errors.ts';
import { collectionPath } from '../../kube/paths.ts';
import { type Cluster, get, list } from '../connect.ts';
import { Exit, Failure } from '../failure.ts';
import type { Mark } from '../mark.ts';
import { greatest, tokensOfLeases, tokensOfLocks, tokensOfMarks } from './issued.ts';
import type { BaseFacts } from './raise-to.ts';

export interface RawNamespace {
  readonly metadata: {
    readonly name: string;
    readonly uid: string;
    readonly resourceVersion: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
}

/** @throws Failure when there is no such Namespace. */
export async function readNamespace(cluster: Cluster, name: string): Promise<RawNamespace> {
  try {
    return await get<RawNamespace>(cluster, 'namespaces', name);
  } catch (err) {
    if (!isNotFound(err)) throw err;
    throw new Failure(`There is no namespace '${name}'. Give --operator-namespace NS.`, {
      exit: Exit.usage,
      cause: err,
    });
  }
}

/** @throws Failure when the annotation is no base. */
export function baseOf({ metadata }: RawNamespace): bigint {
  const text = metadata.annotations?.[TOKEN_BASE_ANNOTATION] ?? '0';
  const base = parseTokenBase(text);
  if (base === undefined) {
    throw new Failure(
      `Annotation ${TOKEN_BASE_ANNOTATION} of namespace ${metadata.name} is '${text}', no decimal integer below 10^16. Correct it.`,
    );
  }
  return base;
}

/** Every token that this cluster knows of, its revision, and the marks that were given. */
export async function readBaseFacts(cluster: Cluster, base: bigint, marks: readonly Mark[]): Promise<BaseFacts> {
  const [leases, locks] = await Promise.all([
    list<RawLease>(cluster, 'leases'),
    list<DistributedLock>(cluster, 'distributedlocks'),
  ]);
  // After them: a token that is granted in between is above a revision that was read before.
  const revision = await readRevision(cluster);
  const seen = [...tokensOfMarks(marks), ...tokensOfLeases(leases), ...tokensOfLocks(locks)];
  return { base, revision, greatest: greatest(seen) };
}

/** One counter for all Leases of a cluster: a list says how far it has come. */
export async function readRevision(cluster: Cluster): Promise<bigint> {
  const path = `${collectionPath('leases')}?limit=1`;
  const { metadata } = await cluster.request<{ readonly metadata: { readonly resourceVersion: string } }>({
    verb: 'GET',
    path,
  });
  return BigInt(metadata.resourceVersion);
}
