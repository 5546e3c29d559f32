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
  const within = { namespace };
  const pods = attempt(list<DoctorPod>(cluster, 'pods', { namespace, query: { labelSelector: LOCK_LABEL } }));
  const [
    server,
    served,
    policies,
    canary,
    injection,
    deployments,
    election,
    base,
    nodes,
    locks,
    leases,
    labelled,
    namespaces,
    events,
    sidecars,
    egress,
    revision,
  ] = await Promise.all([
    cluster.request<Facts['server']>({ verb: 'GET', path: '/version' }),
    attempt(readServed(cluster)),
    attempt(readPolicies(cluster)),
    tryCanary(cluster, [...(operator.ok ? [operator.value] : []), cluster.namespace]),
    tryInjection(cluster, namespace ?? cluster.namespace),
    attempt(list<RawDeployment>(cluster, 'deployments', { query: { labelSelector: OPERATOR_LABELS } })),
    operator.ok ? attempt(watchElection(cluster, io, operator.value)) : operator,
    operator.ok ? attemptFailure(readNamespace(cluster, operator.value).then(baseOf)) : operator,
    attempt(list<RawNode>(cluster, 'nodes')),
    attempt(list<DistributedLock>(cluster, 'distributedlocks', within)),
    attempt(list<RawLease>(cluster, 'leases', { namespace, query: { labelSelector: LOCK_LABEL } })),
    pods,
    attempt(list<RawNamespace>(cluster, 'namespaces')),
    attempt(
      list<RawEvent>(cluster, 'events', { namespace, query: { fieldSelector: `reason=${EndReason.NotConfirmed}` } }),
    ),
    pods.then((read) => (read.ok ? attempt(readSidecars(cluster, read.value)) : read)),
    attempt(readEgress(cluster, namespace)),
    attempt(readRevision(cluster)),
  ]);
  return {
    cliVersion: version,
    namespace,
    server,
    served,
    policies,
    canary,
    injection,
    operator: { namespace: operator, deployments, election, base },
    nodes,
    locks,
    leases: leases.ok
      ? { ok: true, value: leases.value.filter(({ metadata }) => metadata.name.startsWith(LEASE_PREFIX)) }
      : leases,
    pods: labelled,
    namespaces,
    notConfirmed: events,
    sidecars,
    egressPolicies: egress,
    revision,
    latenciesMs: await measure(cluster, io),
    marks: looking.marks,
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
