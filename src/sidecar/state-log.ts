import type { HolderState } from '../core/holder-types.ts';
import type { Trouble } from './lease-client.ts';
import type { Log } from './log.ts';

const MESSAGES: Readonly<Record<HolderState['kind'], string>> = {
  starting: 'Started sidecar',
  waiting: 'Began to wait',
  confirming: 'Saw grant',
  opening: 'Confirmed grant',
  holding: 'Took lock',
  unrenewed: 'Could not renew in time; program goes on behind its guard',
  losing: 'Told program to stop',
  releasing: 'Gave grant back',
  lost: 'Lost lock',
};

/** One line per change of state, and one when a Lease that names this Pod cannot be used. */
export function logChange(log: Log, before: HolderState, after: HolderState): void {
  const fault = faultOf(after);
  if (fault !== undefined && fault !== faultOf(before)) log.error({ fault }, 'Grant could not be read');
  if (before.kind === after.kind) return;
  const fields = {
    state: after.kind,
    ...('grant' in after ? { token: after.grant.token } : {}),
    ...('reason' in after ? { reason: after.reason } : {}),
    ...(after.kind === 'waiting' && after.seen?.lease !== undefined ? { holder: after.seen.lease.holder } : {}),
    ...(after.kind === 'lost' && after.token !== undefined ? { token: after.token } : {}),
  };
  if (before.kind === 'unrenewed' && after.kind === 'holding') log.info(fields, 'Renewed lease again');
  else if (after.kind === 'lost' || after.kind === 'losing' || after.kind === 'unrenewed')
    log.warn(fields, MESSAGES[after.kind]);
  else log.info(fields, MESSAGES[after.kind]);
}

/**
 * One line when the Lease cannot be read any more, or for another reason, and one when it can.
 *
 * Forbidden is what a sidecar is before its lock exists: the API server's words for it would send people after RBAC.
 */
export function createTroubleLog(
  log: Log,
  { lock, namespace }: { readonly lock: string; readonly namespace: string },
): (trouble: Trouble | undefined) => void {
  let told: string | undefined;
  return (trouble) => {
    const text =
      trouble?.kind === 'forbidden'
        ? `lock ${lock} does not exist in namespace ${namespace}, or the operator has not granted access yet; waiting`
        : trouble?.message;
    if (text === told) return;
    told = text;
    if (trouble === undefined) log.info({}, 'Could follow the Lease again');
    else if (trouble.kind === 'forbidden') log.warn({}, text ?? '');
    else log.warn({ reason: text }, 'Lease could not be followed');
  };
}

function faultOf(state: HolderState): string | undefined {
  const lease = state.seen?.lease;
  return lease !== undefined && lease.holder === state.identity && 'fault' in lease.grant
    ? lease.grant.fault
    : undefined;
}
