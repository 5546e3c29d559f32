import { KIND, LOCK_LABEL, leaseName } from '../../api/names.ts';
import { EventReason } from '../../api/reasons.ts';
import type { RawLease } from '../../core/lease.ts';
import type { RawNode } from '../../core/node.ts';
import type { RawPod } from '../../core/raw-pod.ts';
import { attempt, type Read } from '../attempt.ts';
import type { Action } from '../command.ts';
import { CLUSTER_OPTIONS, type Cluster, get, list, NAMESPACE_OPTION, withCluster } from '../connect.ts';
import { Exit } from '../failure.ts';
import { readLock } from '../not-found.ts';
import { valueOf } from '../options.ts';
import { printData } from '../output.ts';
import { describeLock, type LockFacts, type RawEvent } from './description.ts';
import { renderDescription } from './render-description.ts';

export const describe: Action = {
  kind: 'action',
  summary: 'Everything about one lock: holder, queue and why each waits, timings, losses',
  help: `Describes a lock: who holds it since when and with which token, who is next and why each waiter waits, the timings in
force, conditions, the last losses, and who last broke it or asked for a hand-over. Needs the right to get the lock; what else cannot
be read (its Lease, events, Pods) is named at the end.`,
  operands: ['LOCK'],
  options: [
    NAMESPACE_OPTION,
    { name: 'output', short: 'o', value: 'FORMAT', choices: ['json', 'yaml'], summary: 'another format' },
    ...CLUSTER_OPTIONS,
  ],
  examples: ['kilit describe billing', "kilit describe billing -n shop -o json | jq '.queue[0]'"],
  run: (input, io) =>
    withCluster(input, io, async (cluster) => {
      const description = describeLock(await readFacts(cluster, input.operands[0] ?? ''));
      const format = valueOf(input, 'output');
      if (format === 'json' || format === 'yaml') await printData(io, format, description);
      else io.out(renderDescription(description, io.now()));
      return Exit.ok;
    }),
};

async function readFacts(cluster: Cluster, name: string): Promise<LockFacts> {
  const lock = await readLock(cluster, name);
  const { namespace } = cluster;
  const whole = (lock.status?.waiters ?? 0) <= (lock.status?.queue?.length ?? 0);
  const [lease, events, pods, nodes] = await Promise.all([
    attempt(get<RawLease>(cluster, 'leases', leaseName(name), namespace)),
    attempt(readEvents(cluster, name)),
    whole
      ? nothing<RawPod>()
      : attempt(list<RawPod>(cluster, 'pods', { namespace, query: { labelSelector: `${LOCK_LABEL}=${name}` } })),
    whole ? nothing<RawNode>() : attempt(list<RawNode>(cluster, 'nodes')),
  ]);
  return { lock, lease, events, pods, nodes };
}

const nothing = <Item>(): Read<readonly Item[]> => ({ ok: true, value: [] });

/** Those of the operator about the lock, and those of its sidecars about their Pods, which know why. */
async function readEvents(cluster: Cluster, name: string): Promise<readonly RawEvent[]> {
  const { namespace } = cluster;
  const [ofLock, losses] = await Promise.all([
    list<RawEvent>(cluster, 'events', {
      namespace,
      query: { fieldSelector: `regarding.kind=${KIND},regarding.name=${name}` },
    }),
    list<RawEvent>(cluster, 'events', {
      namespace,
      query: { fieldSelector: `regarding.kind=Pod,reason=${EventReason.Lost}` },
    }),
  ]);
  return [...ofLock, ...losses.filter(({ related }) => related?.kind === 'Lease' && related.name === leaseName(name))];
}
