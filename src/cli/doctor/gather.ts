import type { DistributedLock } from '../../api/generated/distributedlock.ts';
import { GROUP, LEASE_PREFIX, LOCK_LABEL, VERSION } from '../../api/names.ts';
import { EndReason } from '../../api/reasons.ts';
import type { RawLease } from '../../core/lease.ts';
import type { RawNode } from '../../core/node.ts';
import { attempt, type Read } from '../attempt.ts';
import { baseOf, type RawNamespace, readNamespace, readRevision } from '../base/read.ts';
import { type Cluster, list } from '../connect.ts';
import { Failure } from '../failure.ts';
import type { Io } from '../io.ts';
import type { RawEvent } from '../lock/description.ts';
import type { Mark } from '../mark.ts';
import { OPERATOR_LABELS } from '../operator-namespace.ts';
import { version } from '../version.ts';
import { tryCanary } from './canary.ts';
import { watchElection } from './election.ts';
import type { DoctorPod, Facts, RawDeployment } from './facts.ts';
import { tryInjection } from './injection.ts';
import { readPolicies } from './policies.ts';
import { readSidecars } from './sidecars.ts';

export interface Looking {
  /** `-n`; undefined: all namespaces, or the context's when those may not be read. */
  readonly namespace: string | undefined;
  readonly operatorNamespace: () => Promise<string>;
  readonly marks: readonly Mark[];
}

/** Reads everything that the checks look at. What may not be read is told in its place. */
export async function gather(cluster: Cluster, io: Io, looking: Looking): Promise<Facts> {
  const namespace = looking.namespace ?? ((await mayListAll(cluster)) ? undefined : cluster.namespace);
  const operator = await attemptFailure(looking.operatorNamespace());
  const pods = attempt(list<DoctorPod>(cluster, 'pods', { namespace, query: { labelSelector: LOCK_LABEL } }));
  const locks = attempt(list<DistributedLock>(cluster, 'distributedlocks', { namespace }));
  const readLeases = attempt(list<RawLease>(cluster, 'leases', { namespace, query: { labelSelector: LOCK_LABEL } }));
  // Revision and base only grow: read after the tokens, so that one that is granted meanwhile is not above them.
  const tokens = Promise.all([locks, readLeases]);
  const { leases, election, deployments, base, ...read } = await together({
    server: cluster.request<Facts['server']>({ verb: 'GET', path: '/version' }),
    served: attempt(readServed(cluster)),
    policies: attempt(readPolicies(cluster)),
    canary: tryCanary(cluster, [...(operator.ok ? [operator.value] : []), cluster.namespace]),
    injection: tryInjection(cluster, namespace ?? cluster.namespace),
    deployments: attempt(list<RawDeployment>(cluster, 'deployments', { query: { labelSelector: OPERATOR_LABELS } })),
    election: operator.ok ? attempt(watchElection(cluster, io, operator.value)) : operator,
    base: operator.ok ? tokens.then(() => attemptFailure(readBase(cluster, operator.value))) : operator,
    nodes: attempt(list<RawNode>(cluster, 'nodes')),
    locks,
    leases: readLeases,
    pods,
    namespaces: attempt(list<RawNamespace>(cluster, 'namespaces')),
    notConfirmed: attempt(
      list<RawEvent>(cluster, 'events', { namespace, query: { fieldSelector: `reason=${EndReason.NotConfirmed}` } }),
    ),
    sidecars: pods.then((labelled) => (labelled.ok ? attempt(readSidecars(cluster, labelled.value)) : labelled)),
    egressPolicies: attempt(readEgress(cluster, namespace)),
    revision: tokens.then(() => attempt(readRevision(cluster))),
  });
  return {
    ...read,
    cliVersion: version,
    namespace,
    operator: { namespace: operator, deployments, election, base },
    leases: leases.ok
      ? { ok: true, value: leases.value.filter(({ metadata }) => metadata.name.startsWith(LEASE_PREFIX)) }
      : leases,
    latenciesMs: await measure(cluster, io),
    marks: looking.marks,
  };
}

const readBase = async (cluster: Cluster, namespace: string): Promise<bigint> =>
  baseOf(await readNamespace(cluster, namespace));

/** `Promise.all` by name. */
async function together<Parts extends Readonly<Record<string, unknown>>>(
  parts: Parts,
): Promise<{ readonly [Name in keyof Parts]: Awaited<Parts[Name]> }> {
  const values = await Promise.all(Object.values(parts));
  const names = Object.keys(parts);
  return Object.fromEntries(names.map((name, i) => [name, values[i]])) as {
    readonly [Name in keyof Parts]: Awaited<Parts[Name]>;
  };
}

async function mayListAll(cluster: Cluster): Promise<boolean> {
  const read = await attempt(list(cluster, 'distributedlocks', { query: { limit: '1' } }));
  return read.ok || read.kind !== 'forbidden';
}

/** What a person can mend is a finding here, not the end. */
async function attemptFailure<Value>(reading: Promise<Value>): Promise<Read<Value>> {
  try {
    return await attempt(reading);
  } catch (err) {
    if (err instanceof Failure) return { ok: false, kind: 'absent', why: err.message };
    throw err;
  }
}

async function readServed(cluster: Cluster): Promise<readonly string[]> {
  const path = `/apis/${GROUP}/${VERSION}`;
  const { resources } = await cluster.request<{ readonly resources: readonly { readonly name: string }[] }>({
    verb: 'GET',
    path,
  });
  return resources.map(({ name }) => name);
}

interface NetworkPolicy {
  readonly metadata: { readonly name: string; readonly namespace: string };
  readonly spec?: { readonly policyTypes?: readonly string[] };
}

async function readEgress(cluster: Cluster, namespace: string | undefined) {
  const all = await list<NetworkPolicy>(cluster, 'networkpolicies', { namespace });
  return all.filter(({ spec }) => spec?.policyTypes?.includes('Egress')).map(({ metadata }) => metadata);
}

const MEASUREMENTS = 5;

/** One after the other, and after everything else, so that they measure the API server and not each other. */
async function measure(cluster: Cluster, io: Io): Promise<readonly number[]> {
  const latencies: number[] = [];
  for (let i = 0; i < MEASUREMENTS; i += 1) {
    const startedAt = io.instant();
    await cluster.request({ verb: 'GET', path: '/version' });
    latencies.push(io.instant() - startedAt);
  }
  return latencies;
}
