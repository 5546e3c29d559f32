/**
 * - `InvalidConfig`: settings that cannot work; the message lists every fault.
 * - `AlreadyRunning`: `run` was called while a former `run`, or its work, had not ended.
 * - `Lost`: the reason with which the work's signal aborts when leadership is lost.
 * - `WorkStillRunning`: the work did not end in time after it was told to. Let the process exit.
 * - `NotHolder`, `NotMinted`: the Lease carries no fencing token for this term.
 */
export type ElectionErrorCode =
  | 'InvalidConfig'
  | 'AlreadyRunning'
  | 'Lost'
  | 'WorkStillRunning'
  | 'NotHolder'
  | 'NotMinted';

export class ElectionError extends Error {
  readonly code: ElectionErrorCode;

  constructor(code: ElectionErrorCode, message: string) {
    super(`[${code}] ${message}`);
    this.name = 'ElectionError';
    this.code = code;
  }
}
