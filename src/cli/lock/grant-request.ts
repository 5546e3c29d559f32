import type { DistributedLock } from '../../api/generated/distributedlock.ts';
import { BREAK_ANNOTATION, HANDOVER_ANNOTATION } from '../../api/names.ts';

/** What an administrator asks of the operator about the present grant. */
export type RequestKind = 'break' | 'handover';

export const ANNOTATIONS: Readonly<Record<RequestKind, string>> = {
  break: BREAK_ANNOTATION,
  handover: HANDOVER_ANNOTATION,
};

/** The value of the annotation: the operator drops it when `token` is not the Lease's any more. */
export interface GrantRequest {
  readonly token: string;
  readonly by: string;
  readonly reason: string;
}

/** What the operator records when it has carried a request out. */
export interface GrantRecord extends GrantRequest {
  readonly time: string;
}

/** The request that stands on the lock; `unreadable`: somebody wrote something else there. */
export function standingRequest(lock: DistributedLock, kind: RequestKind): GrantRequest | 'unreadable' | undefined {
  const text = lock.metadata.annotations?.[ANNOTATIONS[kind]];
  if (text === undefined) return undefined;
  try {
    const { token, by, reason } = JSON.parse(text) as Partial<GrantRequest>;
    return typeof token === 'string' && typeof by === 'string' && typeof reason === 'string'
      ? { token, by, reason }
      : 'unreadable';
  } catch {
    return 'unreadable';
  }
}

/** The last request that was carried out. */
export function lastRecord(lock: DistributedLock, kind: RequestKind): GrantRecord | undefined {
  const status = lock.status as Readonly<Record<string, unknown>> | undefined;
  return status?.[kind === 'break' ? 'lastBreak' : 'lastHandover'] as GrantRecord | undefined;
}
