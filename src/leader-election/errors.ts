/**
 * - `InvalidConfig`: settings that cannot work; the message lists every fault.
 * - `AlreadyRunning`: `run` was called while a former `run`, or its work, had not ended.
 * - `Lost`: the reason with which the work's signal aborts when leadership is lost.
 * - `WorkStillRunning`: the work did not end in time after it was told to. Let the process exit.
 */
export type ElectionErrorCode = 'InvalidConfig' | 'AlreadyRunning' | 'Lost' | 'WorkStillRunning';

export class ElectionError extends Error {
  readonly code: ElectionErrorCode;

  constructor(code: ElectionErrorCode, message: string) {
    super(`[${code}] ${message}`);
    this.name = 'ElectionError';
    this.code = code;
  }
}
