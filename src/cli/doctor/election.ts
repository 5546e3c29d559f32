import { OPERATOR_LEASE } from '../../api/names.ts';
import type { RawLease } from '../../core/lease.ts';
import { type Cluster, get } from '../connect.ts';
import type { Io } from '../io.ts';

/** Longer than the operator's lease lasts (10 s): by then it has renewed, or another has taken over. */
const LONGEST_MS = 12_000;
const LOOK_MS = 500;

/** Watches the operator's own Lease until it is renewed: no clock is compared with that of another machine. */
export async function watchElection(cluster: Cluster, io: Io, namespace: string) {
  const startedAt = io.instant();
  const before = await get<RawLease>(cluster, 'leases', OPERATOR_LEASE, namespace);
  let after = before;
  while (after.spec?.renewTime === before.spec?.renewTime && io.instant() - startedAt < LONGEST_MS) {
    if ((before.spec?.holderIdentity ?? '') === '' && io.instant() - startedAt >= LOOK_MS) break;
    await io.sleep(LOOK_MS);
    after = await get<RawLease>(cluster, 'leases', OPERATOR_LEASE, namespace);
  }
  return { before, after, watchedSeconds: (io.instant() - startedAt) / 1000 };
}
