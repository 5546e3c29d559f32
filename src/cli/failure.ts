/** Exit codes of `kilit`, told by its help. */
export const Exit = {
  /** Done; of `doctor`: nothing failed. */
  ok: 0,
  /** Not done, or a check of `doctor` failed. */
  failed: 1,
  /** The command line was wrong, or an answer was needed and nobody could give one; nothing was done. */
  usage: 2,
} as const;
export type Exit = (typeof Exit)[keyof typeof Exit];

/** What a person can mend: its message says what happened and what to do. Shown without a stack. */
export class Failure extends Error {
  override readonly name = 'Failure';
  readonly exit: Exit;

  constructor(message: string, { exit = Exit.failed, cause }: { readonly exit?: Exit; readonly cause?: unknown } = {}) {
    super(message, { cause });
    this.exit = exit;
  }
}
