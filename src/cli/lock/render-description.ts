import { since } from '../text.ts';
import type { Description } from './description.ts';
import type { RequestKind } from './grant-request.ts';

/** A description as text. */
export function renderDescription(description: Description, now: number): string {
  const sections = [
    headLines(description, now),
    ['Timings', ...indented(timingLines(description, now))],
    [`Queue (${description.waiters})`, ...indented(queueLines(description))],
    ['Conditions', ...indented(conditionLines(description, now))],
    ['Last losses', ...indented(lossLines(description, now))],
    [
      'Administration',
      ...indented([...requestLines(description, 'break', now), ...requestLines(description, 'handover', now)]),
    ],
    ...(description.unread.length === 0 ? [] : [['Not read', ...indented(description.unread)]]),
  ];
  return `${sections.map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

const indented = (lines: readonly string[]): readonly string[] => lines.map((line) => `  ${line}`);
const ago = (time: string, now: number): string => `${since(time, now) || '?'} ago`;

function headLines({ namespace, name, createdTime, holder, token, grants }: Description, now: number): string[] {
  const age = createdTime === null ? '' : `, ${since(createdTime, now)} old`;
  const node = holder?.node === null || holder?.node === '' ? '' : ` on node ${holder?.node}`;
  return [
    `Lock     ${name} (namespace ${namespace}${age})`,
    `Holder   ${holder === null ? 'nobody' : `Pod ${holder.pod}${node}, for ${since(holder.since, now)} (since ${holder.since})`}`,
    `Token    ${token}${token === '0' ? ' (never granted)' : holder === null ? ' (of the last grant)' : ''}`,
    `Grants   ${grants}`,
  ];
}

function timingLines({ timings }: Description, now: number): string[] {
  const { grant, nextGrant, renewTime, confirmed } = timings;
  const lines: string[] = [];
  if (grant !== null) {
    const { leaseDurationSeconds: lease } = grant;
    const failing =
      timings.onRenewalFailure === 'ContinueFenced'
        ? 'its programs go on when renewals fail, until another holds (ContinueFenced)'
        : `its programs are stopped ${rounded(lease * 0.9)} s after the last good renewal`;
    const last = confirmed
      ? `${ago(renewTime ?? '', now)}, by the holder's clock`
      : 'none: the grant is not confirmed yet';
    lines.push(
      `this grant      lease ${lease} s, renewed every ${rounded(lease / 3)} s; ${failing}`,
      `last renewal    ${renewTime === null ? 'none' : last}`,
      `if it is silent ${silence(grant, timings.takeover)}`,
    );
  }
  const { leaseDurationSeconds: lease, takeoverDelaySeconds: delay } = nextGrant;
  if (grant === null || grant.leaseDurationSeconds !== lease) {
    lines.push(
      `next grant      lease ${lease} s, takeover delay ${delay} s or 2 s for each container and 1 s, whichever is longer`,
    );
  }
  return lines;
}

function silence(grant: NonNullable<Description['timings']['grant']>, takeover: 'Lease' | 'PodGone'): string {
  if (takeover === 'PodGone') {
    return 'nobody is granted the lock before its Pod is known to have ended (PodGone), unless it is broken';
  }
  const { leaseDurationSeconds: lease, takeoverDelaySeconds: delay, gracePeriodSeconds: grace } = grant;
  return `the next grant comes ${lease + delay} s after the last renewal (lease ${lease} s, takeover delay ${delay} s), ${grace} s later if it is being deleted`;
}

const rounded = (seconds: number): string => String(Math.round(seconds * 10) / 10);

function queueLines({ queue, waiters }: Description): string[] {
  if (waiters === 0) return ['nobody waits'];
  const lines = queue.map(
    ({ name, next, reason, message }, i) =>
      `${i + 1}. ${name}   ${next ? 'next; ' : ''}${reason}${message === '' ? '' : `: ${message}`}`,
  );
  return waiters > queue.length ? [...lines, `… and ${waiters - queue.length} more`] : lines;
}

const conditionLines = ({ conditions }: Description, now: number): string[] =>
  conditions.length === 0
    ? ['none: no operator has looked at this lock yet; see: kilit doctor']
    : conditions.map(
        ({ type, status, reason, message, lastTransitionTime }) =>
          `${type}=${status} for ${since(lastTransitionTime, now)}   ${reason}: ${message}`,
      );

const lossLines = ({ losses }: Description, now: number): string[] =>
  losses.length === 0
    ? ['none known; events are kept for an hour by default']
    : losses.map(({ time, reason, note }) => `${ago(time, now)}   ${reason}: ${note}`);

function requestLines({ requests }: Description, kind: RequestKind, now: number): string[] {
  const { standing, last } = requests[kind];
  const lines: string[] = [];
  if (standing === 'unreadable') lines.push(`${kind} is asked for by an annotation that is no { token, by, reason }`);
  else if (standing !== null)
    lines.push(`${kind} of token ${standing.token} is asked for by ${standing.by}: ${standing.reason}`);
  lines.push(
    last === null
      ? `last ${kind}: none`
      : `last ${kind}: ${ago(last.time, now)}, token ${last.token}, by ${last.by}: ${last.reason}`,
  );
  return lines;
}
