import type { Action } from './actions.ts';
import type { LeaseView } from './lease.ts';
import type { LockView } from './lock.ts';
import type { GrantGate } from './observed.ts';
import type { Requests } from './requests.ts';
import type { Tenure } from './tenure.ts';
import { nextFencingToken } from './token.ts';

/**
 * Breaks the present grant: the lock is held in the holder's stead by nobody's Pod, under a new token.
 *
 * Guards that have seen the new token refuse the old holder, its sidecar stops it, and nobody else is granted the lock
 * until that is done: it is dead, or its lease and takeover delay have run out (`judgeTenure`). The terms are kept.
 */
export function decideBreak(input: {
  readonly lock: LockView;
  readonly lease: LeaseView;
  readonly tenure: Tenure;
  readonly gate: GrantGate;
  readonly break: Requests['break'];
}): Action | undefined {
  const { lock, lease, tenure, gate, break: standing } = input;
  if (standing.kind !== 'open' || !standing.recorded) return undefined;
  if (tenure.kind !== 'held' || !gate.open || lease.token === undefined) return undefined;
  const { resourceVersion, token } = lease;
  return {
    kind: 'Break',
    lock,
    lease,
    token: nextFencingToken({ resourceVersion, token, base: gate.base }),
    holder: tenure.holder,
    request: standing.request,
  };
}

/** Takes a request off the lock that was carried out, or cannot be; one in a pass. */
export function dropRequest(lock: LockView, requests: Requests): Action | undefined {
  for (const request of ['break', 'handover'] as const) {
    const standing = requests[request];
    if (standing.kind === 'done') return { kind: 'DropRequest', lock, request, why: undefined };
    if (standing.kind === 'dropped') return { kind: 'DropRequest', lock, request, why: standing.why };
  }
  return undefined;
}
