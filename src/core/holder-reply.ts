import { assertNever } from './assert-never.ts';
import { recordsGrant } from './holder-lease.ts';
import {
  end,
  isTrying,
  lossBy,
  open,
  rest,
  retry,
  settle,
  stay,
  type Trying,
  takeReply,
  tellOrLose,
} from './holder-moves.ts';
import { followReleasing, observe } from './holder-observe.ts';
import { deadlineAt, renewAt } from './holder-timing.ts';
import { type HolderEvent, type HolderState, LossReason, type Step } from './holder-types.ts';
import { renewAgain } from './holder-unrenewed.ts';

type Wrote = Extract<HolderEvent, { readonly kind: 'wrote' }>;

/** The one answer to a write: good, refused or none. */
export function onReply(state: HolderState, event: Wrote): Step {
  const { result, id, now } = event;
  if (!isTrying(state) || state.attempt.kind !== 'writing' || state.attempt.id !== id) {
    // The reply to a write of an earlier state. What it shows of the Lease is as good as a watch event.
    if (result.kind !== 'ok') return stay(state);
    const { lease } = result;
    return observe(state, { lease, revision: lease.revision, requestedAt: undefined }, event);
  }
  if (result.kind !== 'ok') return onRefused(state, event, result.kind);
  const { sentAt } = state.attempt;
  const { lease } = result;
  const known = takeReply(state, lease, now);
  switch (known.kind) {
    case 'releasing':
      return followReleasing({ ...known, attempt: { kind: 'resting', until: now, failures: 0 } }, event);
    case 'confirming':
      if (!recordsGrant(known.seen?.lease, known.identity, known.grant) || known.seen.lease.yieldAsked !== undefined)
        return settle(known, event);
      // The validity of this reply may have ended while it was on its way (etcd-io/etcd#9921): confirm once more.
      if (now >= deadlineAt(sentAt, known.grant.leaseDurationMs)) return stay(rest(known, event));
      return open(known, sentAt);
    case 'holding':
    case 'unrenewed': {
      const reason = lossBy(known);
      if (reason !== undefined) return tellOrLose(known, now, reason);
      const { leaseDurationMs } = known.grant;
      const until = renewAt(sentAt, leaseDurationMs);
      const deadline = deadlineAt(sentAt, leaseDurationMs);
      const attempt = { kind: 'resting', until, failures: 0 } as const;
      if (known.kind === 'unrenewed') return renewAgain(known, event, { renewedAt: sentAt, deadline, attempt });
      return stay({ ...known, renewedAt: sentAt, deadline, attempt });
    }
    default:
      return assertNever(known);
  }
}

function onRefused(state: Trying, event: Wrote, result: Parameters<typeof retry>[1]): Step {
  // The next start of this Pod finds the grant and releases it; there is nothing to wait for here.
  if (state.kind === 'releasing' && state.next === 'exit') return end(state, LossReason.FilesFailed, { counts: true });
  return retry(state, result, event);
}
