import { type Grant, type ObservedLease, readLease } from '../../src/core/holder-lease.ts';
import type { HolderEvent, HolderState, Mode, Observation } from '../../src/core/holder-types.ts';

export const ME = 'billing-0_uid-0';
export const OTHER = 'billing-1_uid-1';
export const LEASE_MS = 15_000;

export const T0 = '2026-01-01T00:00:00.000000Z';
export const T1 = '2026-01-01T00:00:05.000000Z';

/** A Lease as the API server shows it; by default granted to ME and not confirmed. */
export function aLease(
  parts: {
    readonly holder?: string;
    readonly token?: string | undefined;
    readonly revision?: string;
    readonly acquireTime?: unknown;
    readonly renewTime?: unknown;
    readonly seconds?: unknown;
    readonly yield?: string;
    readonly deletionTimestamp?: string;
    readonly onRenewalFailure?: string;
  } = {},
): unknown {
  const acquireTime = 'acquireTime' in parts ? parts.acquireTime : T0;
  return {
    metadata: {
      name: 'kilit.billing',
      uid: 'lease-uid',
      resourceVersion: parts.revision ?? '100',
      ...('token' in parts && parts.token === undefined
        ? {}
        : {
            annotations: {
              'kilit.dev/fencing-token': parts.token ?? '42',
              ...(parts.onRenewalFailure && { 'kilit.dev/on-renewal-failure': parts.onRenewalFailure }),
              ...(parts.yield !== undefined && { 'kilit.dev/yield': parts.yield }),
            },
          }),
      ...(parts.deletionTimestamp === undefined ? {} : { deletionTimestamp: parts.deletionTimestamp }),
    },
    spec: {
      holderIdentity: parts.holder ?? ME,
      leaseDurationSeconds: 'seconds' in parts ? parts.seconds : LEASE_MS / 1000,
      acquireTime,
      renewTime: 'renewTime' in parts ? parts.renewTime : acquireTime,
    },
  };
}

export function observed(parts: Parameters<typeof aLease>[0] = {}): ObservedLease {
  const reading = readLease(aLease(parts));
  if (reading.kind !== 'lease') throw new Error(`Not a lease: ${JSON.stringify(reading)}`);
  return reading.lease;
}

/** What a watch brings. */
export function news(lease: ObservedLease): Observation {
  return { lease, revision: lease.revision, requestedAt: undefined };
}

export const GRANT: Grant = { token: 42n, acquireTime: T0, leaseDurationMs: LEASE_MS, onRenewalFailure: 'Stop' };
export const FENCED: Grant = { ...GRANT, onRenewalFailure: 'ContinueFenced' };
export const granted = observed({ revision: '100' });
export const confirmed = observed({ revision: '101', renewTime: T1 });

type StateOf<Kind extends HolderState['kind']> = Extract<HolderState, { readonly kind: Kind }>;

/** One state of each kind, as they stand at 10,000 ms; the last good renewal was sent at 9,000 ms. */
export function states(mode: Mode): { readonly [Kind in HolderState['kind']]: StateOf<Kind> } {
  const base = { identity: ME, mode, seen: { at: 9500, revision: 101n, lease: confirmed }, writes: 7 };
  const tenure = { ...base, grant: GRANT, renewedAt: 9000, deadline: 22_500, heldSince: 4000 };
  const writing = { kind: 'writing', id: 7, sentAt: 9000, failures: 0 } as const;
  return {
    starting: { ...base, kind: 'starting', seen: undefined, writes: 0 },
    waiting: {
      ...base,
      kind: 'waiting',
      seen: { at: 9000, revision: 99n, lease: observed({ holder: OTHER, revision: '99' }) },
    },
    confirming: {
      ...base,
      kind: 'confirming',
      seen: { at: 9000, revision: 100n, lease: granted },
      grant: GRANT,
      attempt: writing,
    },
    opening: { ...tenure, kind: 'opening' },
    holding: { ...tenure, kind: 'holding', attempt: { kind: 'writing', id: 7, sentAt: 9800, failures: 0 } },
    // Since 4,000 ms: its last good renewal was sent longer ago than in the others.
    unrenewed: {
      ...tenure,
      kind: 'unrenewed',
      grant: FENCED,
      renewedAt: -9500,
      deadline: 4000,
      since: 4000,
      attempt: { kind: 'writing', id: 7, sentAt: 9800, failures: 3 },
    },
    losing: { ...tenure, kind: 'losing', mode: 'standby', reason: 'DeadlinePassed', stopAt: 22_500 },
    releasing: { ...base, kind: 'releasing', grant: GRANT, attempt: writing, next: 'wait' },
    lost: { ...base, kind: 'lost', reason: 'DeadlinePassed', token: 42n },
  };
}

export const NOW = 10_000;
type WithoutTime<Event> = Event extends unknown ? Omit<Event, 'now' | 'jitter'> : never;
export const at = (now: number, event: WithoutTime<HolderEvent>): HolderEvent => ({ ...event, now, jitter: 0.5 });
