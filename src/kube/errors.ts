/** What the API server answered instead of doing what it was asked. */
export class ApiError extends Error {
  /** HTTP status, 0 when no answer came. */
  readonly status: number;
  /** `reason` of the Status object, such as `AlreadyExists`. */
  readonly reason: string;

  constructor(status: number, reason: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'ApiError';
    this.status = status;
    this.reason = reason;
  }
}

export const isConflict = (err: unknown): boolean => err instanceof ApiError && err.status === 409;
export const isNotFound = (err: unknown): boolean => err instanceof ApiError && err.status === 404;
export const isAlreadyExists = (err: unknown): boolean =>
  isConflict(err) && (err as ApiError).reason === 'AlreadyExists';
/** Nothing can be made in a namespace that is being deleted; what is in it goes by itself. */
export const isNamespaceTerminating = (err: unknown): boolean =>
  err instanceof ApiError && err.status === 403 && err.message.includes('because it is being terminated');
