/** What went wrong with a lock or a guard, in a form that a program can act on. */
export type LockErrorCode =
  /** The resource has seen a newer token: this process is no longer the holder and should exit. */
  | 'StaleToken'
  /** A write to a protected table in a transaction that did not enter. */
  | 'NotEntered'
  /** A seal is blocked by something that it cannot end, such as a prepared transaction. */
  | 'Blocked'
  /** Concurrent transactions got in each other's way; trying again may help. */
  | 'Conflict'
  | 'Forbidden'
  | 'InvalidConfig';

export interface LockErrorOptions {
  /** Whether the same call may succeed later. @default false */
  readonly retryable?: boolean;
  readonly cause?: unknown;
  /** Of a `StaleToken`. */
  readonly details?: StaleTokenDetails;
}

export interface StaleTokenDetails {
  readonly resource: string;
  /** Decimal; never a `number`, which is not exact above 2^53. */
  readonly token: string;
  /** The greatest token that the resource has seen. */
  readonly mark: string;
}

/** The one error class of kilit's libraries; its message begins with the code in brackets. */
export class LockError extends Error {
  override readonly name = 'LockError';
  readonly code: LockErrorCode;
  readonly retryable: boolean;
  readonly details: StaleTokenDetails | undefined;

  constructor(code: LockErrorCode, message: string, { retryable = false, cause, details }: LockErrorOptions = {}) {
    super(`[${code}] ${message}`, { cause });
    this.code = code;
    this.retryable = retryable;
    this.details = details;
  }
}
