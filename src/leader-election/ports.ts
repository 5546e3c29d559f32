/** The part of a Lease that an election reads and writes: `spec` of `coordination.k8s.io/v1` without its optionality. */
export interface LeaseRecord {
  /** `''`: nobody holds the Lease. */
  readonly holderIdentity: string;
  /** What the holder promised when it wrote: it stops before this many seconds have passed since it last wrote. */
  readonly leaseDurationSeconds: number;
  /** RFC 3339 with six fraction digits. Shown to people and compared for equality, never for age. */
  readonly acquireTime: string;
  /** As `acquireTime`. */
  readonly renewTime: string;
  /** How many times the holder has changed. */
  readonly leaseTransitions: number;
}

/** A Lease as the API server returned it. */
export interface StoredLease {
  readonly resourceVersion: string;
  readonly record: LeaseRecord;
}

/**
 * One Lease at the API server.
 *
 * Every method rejects with a `LeaseStoreError`; any other error counts as `Other`: the outcome of a write is then
 * unknown. `update` must be refused with `Conflict` unless the stored revision is `resourceVersion`, must return what the
 * API server stored, and must keep the labels, annotations and owner references of the object.
 * A store may not retry by itself: the elector counts its deadline from the moment of the call.
 */
export interface LeaseStore {
  get(signal: AbortSignal): Promise<StoredLease>;
  create(record: LeaseRecord, signal: AbortSignal): Promise<StoredLease>;
  update(record: LeaseRecord, resourceVersion: string, signal: AbortSignal): Promise<StoredLease>;
}

export type LeaseStoreErrorCode = 'NotFound' | 'AlreadyExists' | 'Conflict' | 'Other';

export class LeaseStoreError extends Error {
  readonly code: LeaseStoreErrorCode;

  constructor(code: LeaseStoreErrorCode, message: string, options?: ErrorOptions) {
    super(`[${code}] ${message}`, options);
    this.name = 'LeaseStoreError';
    this.code = code;
  }
}

/** A pino logger fits. */
export interface ElectionLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export type ElectionPhase = 'idle' | 'waiting' | 'leading' | 'stopping';

/** Hooks for metrics. They must not throw and are called synchronously. */
export interface ElectionObserver {
  /** `reason` is present when leadership was lost. */
  phaseChanged?(change: {
    readonly from: ElectionPhase;
    readonly to: ElectionPhase;
    readonly reason?: LossReason;
  }): void;
  /** A good renewal: how long its request took, and how long after the last good one it was sent. */
  renewed?(renewal: { readonly durationSeconds: number; readonly sinceLastSeconds: number }): void;
  /** More than half of the renew deadline lay between two good renewals: the API server is slow or partly away. */
  slowRenewal?(renewal: { readonly sinceLastSeconds: number; readonly renewDeadlineSeconds: number }): void;
  /** A renewal that failed or was not answered in time; it is tried again until the deadline. */
  renewalFailed?(): void;
}

/**
 * Why a leader stopped being one.
 *
 * - `DeadlinePassed`: no renewal was confirmed in time.
 * - `OtherHolder`: the Lease names somebody else, or nobody.
 * - `SharedIdentity`: the Lease names this identity, but another process wrote it.
 * - `LeaseDeleted`: the Lease is gone, so that anybody may create it anew.
 */
export type LossReason = 'DeadlinePassed' | 'OtherHolder' | 'SharedIdentity' | 'LeaseDeleted';
