import { differentMicroTime } from '../core/micro-time.ts';
import type { LeaseRecord } from './ports.ts';

interface Writer {
  readonly identity: string;
  readonly leaseDurationSeconds: number;
}

/** The record that begins a term. A writer that already stands in the Lease begins a new term without a transition. */
export function acquiredRecord(
  writer: Writer,
  wallMicroseconds: bigint,
  previous: LeaseRecord | undefined,
): LeaseRecord {
  const time = differentMicroTime(wallMicroseconds, previous === undefined ? [] : [previous.renewTime]);
  return {
    holderIdentity: writer.identity,
    leaseDurationSeconds: writer.leaseDurationSeconds,
    acquireTime: time,
    renewTime: time,
    leaseTransitions: transitions(writer, previous),
  };
}

function transitions(writer: Writer, previous: LeaseRecord | undefined): number {
  if (previous === undefined) return 0;
  return previous.holderIdentity === writer.identity ? previous.leaseTransitions : previous.leaseTransitions + 1;
}

/** A clock that was set back must not repeat a time: the API server would store nothing, waiters would see no renewal. */
export function renewedRecord(record: LeaseRecord, wallMicroseconds: bigint): LeaseRecord {
  return { ...record, renewTime: differentMicroTime(wallMicroseconds, [record.renewTime]) };
}

/** Everything but the holder stays, so that the history of the Lease stays readable. */
export function releasedRecord(record: LeaseRecord): LeaseRecord {
  return { ...record, holderIdentity: '' };
}
