import type { DistributedLock, DistributedLockStatus, LockWaiter } from '../../api/generated/distributedlock.ts';
import { WaitReason } from '../../api/reasons.ts';
import { since, table } from '../text.ts';

/** A lock in `kilit list`; `null`: there is none. */
export interface LockRow {
  readonly namespace: string;
  readonly name: string;
  readonly holder: string | null;
  readonly node: string | null;
  /** Of the present or last grant; `"0"` before the first. A string: a token is no JSON number. */
  readonly token: string;
  readonly heldSince: string | null;
  readonly waiters: number;
  /** The waiter that is granted the lock when it is free. */
  readonly next: string | null;
  readonly ready: 'True' | 'False' | 'Unknown';
  /** Why it is not ready. */
  readonly readyMessage: string | null;
  readonly leaseDurationSeconds: number | null;
  readonly takeoverDelaySeconds: number | null;
  readonly grants: number;
  readonly createdTime: string | null;
}

export function rowOf({ metadata, spec, status = {} }: DistributedLock): LockRow {
  const ready = status.conditions?.find(({ type }) => type === 'Ready');
  return {
    namespace: metadata.namespace,
    name: metadata.name,
    holder: status.holder?.name ?? null,
    node: status.holder?.node ?? null,
    token: status.fencingToken ?? '0',
    heldSince: status.acquiredTime ?? null,
    waiters: status.waiters ?? 0,
    next: nextInLine(status)?.name ?? null,
    ready: ready?.status ?? 'Unknown',
    readyMessage: ready?.status === 'True' ? null : (ready?.message ?? 'No operator has looked at it yet.'),
    leaseDurationSeconds: spec?.leaseDurationSeconds ?? null,
    takeoverDelaySeconds: spec?.takeoverDelaySeconds ?? null,
    grants: status.transitions ?? 0,
    createdTime: metadata.creationTimestamp ?? null,
  };
}

/** Reasons of a waiter that nothing of its own keeps from being granted the lock. */
const COULD_HOLD: readonly string[] = [
  WaitReason.Waiting,
  WaitReason.GrantsPaused,
  WaitReason.LockDeleting,
  WaitReason.PreviousHolder,
];

/** A waiter that cannot start is passed over, as the operator does. */
export const nextInLine = (status: DistributedLockStatus): LockWaiter | undefined =>
  status.queue?.find(({ reason }) => COULD_HOLD.includes(reason));

export interface ListShape {
  readonly allNamespaces: boolean;
  readonly wide: boolean;
}

/** The rows as text, like those of `kubectl get dlock`. */
export function renderRows(rows: readonly LockRow[], { allNamespaces, wide }: ListShape, now: number): string {
  const heads = [
    ...(allNamespaces ? ['NAMESPACE'] : []),
    'NAME',
    'HOLDER',
    'TOKEN',
    'HELD',
    'WAITERS',
    'NEXT',
    'READY',
    ...(wide ? ['NODE', 'LEASE', 'DELAY', 'GRANTS', 'AGE', 'WHY NOT READY'] : []),
  ];
  return table(
    heads,
    rows.map((row) => [
      ...(allNamespaces ? [row.namespace] : []),
      row.name,
      row.holder ?? '',
      row.token,
      since(row.heldSince ?? undefined, now),
      String(row.waiters),
      row.next ?? '',
      row.ready,
      ...(wide ? wideCells(row, now) : []),
    ]),
  );
}

const wideCells = (row: LockRow, now: number): readonly string[] => [
  row.node ?? '',
  row.leaseDurationSeconds === null ? '' : `${row.leaseDurationSeconds}s`,
  row.takeoverDelaySeconds === null ? '' : `${row.takeoverDelaySeconds}s`,
  String(row.grants),
  since(row.createdTime ?? undefined, now),
  row.readyMessage ?? '',
];
