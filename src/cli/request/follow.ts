import type { DistributedLock } from '../../api/generated/distributedlock.ts';
import { leaseName } from '../../api/names.ts';
import { leaseView, type RawLease } from '../../core/lease.ts';
import { type Cluster, get } from '../connect.ts';
import { Failure } from '../failure.ts';
import type { Io } from '../io.ts';
import { type GrantRequest, lastRecord, type RequestKind, standingRequest } from '../lock/grant-request.ts';
import { duration } from '../text.ts';
import { breakHolder, type Seen, stageOf, stageText, verdictOf } from './stage.ts';

/** On a Lease, written by the operator: why it asks the holder to yield. */
const YIELD_ANNOTATION = 'kilit.dev/yield';

const LOOK_MS = 500;
/** How often a person is told that nothing has changed. */
const TELL_MS = 5_000;

export interface Followed {
  readonly kind: RequestKind;
  readonly lock: string;
  readonly request: GrantRequest;
  readonly timeoutMs: number;
}

/**
 * Watches a request until the lock has passed on or is free, and tells each step.
 *
 * @throws Failure when the operator drops the request, or after `timeoutMs`. The request stands then.
 */
export async function follow(cluster: Cluster, io: Io, { kind, lock, request, timeoutMs }: Followed): Promise<void> {
  const startedAt = io.instant();
  let told = '';
  let toldAt = startedAt;
  let stage = '';
  let stageAt = startedAt;
  for (;;) {
    const now = stageOf(request, await look(cluster, kind, lock));
    const at = io.instant();
    if (now.kind !== stage) [stage, stageAt] = [now.kind, at];
    const text = stageText(kind, now);
    if (text !== told || at - toldAt >= TELL_MS) {
      io.err(`${duration(at - startedAt).padStart(6)}  ${text === told ? `still: ${text}` : text}\n`);
      [told, toldAt] = [text, at];
    }
    const verdict = verdictOf(now, at - stageAt);
    if (verdict === 'ok') return;
    if (verdict === 'failed') {
      throw new Failure(
        `The operator has dropped the ${kind} of token ${request.token} and the holder is the same: its events say why: kilit describe ${lock} -n ${cluster.namespace}`,
      );
    }
    if (at - startedAt >= timeoutMs) {
      throw new Failure(
        `Not done after ${duration(timeoutMs)}: ${text}. The request stands. Is the operator running, and new enough? See: kilit doctor; kilit describe ${lock} -n ${cluster.namespace}`,
      );
    }
    await io.sleep(LOOK_MS);
  }
}

async function look(cluster: Cluster, kind: RequestKind, name: string): Promise<Seen> {
  const { namespace } = cluster;
  const [lock, raw] = await Promise.all([
    get<DistributedLock>(cluster, 'distributedlocks', name, namespace),
    get<RawLease>(cluster, 'leases', leaseName(name), namespace),
  ]);
  const lease = leaseView(raw, 0, undefined);
  return {
    standing: standingRequest(lock, kind),
    recorded: lastRecord(lock, kind)?.token,
    token: lease.token ?? 0n,
    holder: lease.holder?.name,
    breaking: lease.holder?.name === breakHolder(lock.metadata.uid),
    yielding: raw.metadata.annotations?.[YIELD_ANNOTATION] !== undefined,
  };
}
