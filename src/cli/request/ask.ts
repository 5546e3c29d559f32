import type { DistributedLock } from '../../api/generated/distributedlock.ts';
import { leaseName } from '../../api/names.ts';
import { type LeaseView, leaseView, type RawLease } from '../../core/lease.ts';
import { isConflict, isNotFound } from '../../kube/errors.ts';
import { objectPath } from '../../kube/paths.ts';
import { confirm } from '../confirm.ts';
import { type Cluster, get } from '../connect.ts';
import { Exit, Failure } from '../failure.ts';
import type { Io } from '../io.ts';
import { ANNOTATIONS, type GrantRequest, type RequestKind, standingRequest } from '../lock/grant-request.ts';
import { readLock } from '../not-found.ts';
import { type Input, isGiven, valueOf } from '../options.ts';
import { since } from '../text.ts';
import { follow } from './follow.ts';
import { breakHolder } from './stage.ts';
import { mustBeAllowed, whoAmI } from './who.ts';

/** Longest reason that the policy accepts, in characters. */
const LONGEST_REASON = 256;
/** Added to the longest time in which the terms of the grant let it end. */
const SPARE_SECONDS = 60;

export interface Asking {
  readonly kind: RequestKind;
  /** What will happen, told before the question. */
  consequences(grant: LeaseView): string;
}

/** Asks the operator to break or hand over the present grant, and no other. */
export async function askOperator(cluster: Cluster, input: Input, io: Io, asking: Asking): Promise<Exit> {
  const [name = ''] = input.operands;
  const reason = checkedReason(valueOf(input, 'reason') ?? '');
  const timeoutText = valueOf(input, 'timeout');
  if (timeoutText !== undefined && !/^[1-9][0-9]{0,5}$/.test(timeoutText)) {
    throw new Failure(`--timeout takes whole seconds, not '${timeoutText}'.`, { exit: Exit.usage });
  }
  const { kind } = asking;
  const lock = await readLock(cluster, name);
  const { lease, holder, token } = await presentGrant(cluster, lock, kind);
  refuseSecond(lock, kind, token);
  const by = await whoAmI(cluster);
  await mustBeAllowed(cluster, name, by);

  const held = since(lease.acquireTime, io.now());
  io.err(`Lock ${name} in namespace ${cluster.namespace} is held by Pod ${holder} with token ${token}, for ${held}.\n`);
  io.err(`${asking.consequences(lease)}\n`);
  await confirm(
    input,
    io,
    kind === 'break' ? `Break the grant of token ${token}` : `Ask for a hand-over of token ${token}`,
  );

  const request: GrantRequest = { token: token.toString(), by, reason };
  await write(cluster, { name, kind, request, uid: lock.metadata.uid });
  io.out(`Asked for the ${kind} of lock ${name}, token ${token}, as ${by}.\n`);
  if (!isGiven(input, 'wait')) {
    io.err(`Follow it: kilit describe ${name} -n ${cluster.namespace}\n`);
    return Exit.ok;
  }
  const { leaseDurationSeconds, takeoverDelaySeconds, gracePeriodSeconds } = lease.terms;
  const most = leaseDurationSeconds + takeoverDelaySeconds + gracePeriodSeconds + SPARE_SECONDS;
  await follow(cluster, io, { kind, lock: name, request, timeoutMs: Number(timeoutText ?? most) * 1000 });
  return Exit.ok;
}

function checkedReason(text: string): string {
  const reason = text.trim();
  if (reason === '') throw new Failure('--reason must not be empty: it is recorded.', { exit: Exit.usage });
  if (reason.length > LONGEST_REASON) {
    const message = `--reason may have ${LONGEST_REASON} characters, it has ${reason.length}.`;
    throw new Failure(message, { exit: Exit.usage });
  }
  return reason;
}

/** The grant that the Lease records now. @throws Failure when there is none to end. */
async function presentGrant(cluster: Cluster, { metadata: { name, uid } }: DistributedLock, kind: RequestKind) {
  const lease = await readLease(cluster, name);
  const { holder, token } = lease;
  if (holder === undefined || token === undefined || token === 0n) {
    throw new Failure(`Nobody holds lock '${name}': there is no grant for a ${kind} to end.`);
  }
  if (holder.name === breakHolder(uid)) {
    throw new Failure(
      `Lock '${name}' is being broken already; its token is ${token} now. Wait: kilit describe ${name}`,
    );
  }
  return { lease, holder: holder.name, token };
}

async function readLease(cluster: Cluster, name: string): Promise<LeaseView> {
  try {
    return leaseView(await get<RawLease>(cluster, 'leases', leaseName(name), cluster.namespace), 0, undefined);
  } catch (err) {
    if (!isNotFound(err)) throw err;
    throw new Failure(`Lock '${name}' has no Lease yet: no operator has looked at it. See: kilit doctor`, {
      cause: err,
    });
  }
}

/** A second request would put another name and reason over the first. */
function refuseSecond(lock: DistributedLock, kind: RequestKind, token: bigint): void {
  const standing = standingRequest(lock, kind);
  if (standing === undefined || standing === 'unreadable' || standing.token !== token.toString()) return;
  throw new Failure(
    `A ${kind} of token ${token} is asked for already, by ${standing.by}: ${standing.reason}. Wait for it, or remove the annotation ${ANNOTATIONS[kind]}.`,
  );
}

/** Status changes count up the lock's revision too, so a conflict need not mean that the grant has changed. */
const WRITE_TRIES = 5;

interface Writing {
  readonly name: string;
  readonly kind: RequestKind;
  readonly request: GrantRequest;
  readonly uid: string;
}

/** Writes the request onto the lock, only as long as the grant is the one that was shown. */
async function write(cluster: Cluster, { name, kind, request, uid }: Writing): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    const lock = await readLock(cluster, name);
    const { token } = await presentGrant(cluster, lock, kind);
    if (token.toString() !== request.token) {
      throw new Failure(
        `The lock has passed on meanwhile: its token is ${token} now, not ${request.token}. Nothing was written.`,
      );
    }
    refuseSecond(lock, kind, token);
    const { resourceVersion } = lock.metadata;
    const annotations = { [ANNOTATIONS[kind]]: JSON.stringify(request) };
    try {
      await cluster.request({
        verb: 'PATCH',
        path: objectPath('distributedlocks', cluster.namespace, name),
        body: { metadata: { uid, resourceVersion, annotations } },
      });
      return;
    } catch (err) {
      if (!isConflict(err) || tries === WRITE_TRIES) throw err;
    }
  }
}
