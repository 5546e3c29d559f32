import type { Read, Unread } from '../attempt.ts';

/** `fail`: something does not work or is not safe. `warn`: it may go wrong, or could not be looked at. */
export type Result = 'ok' | 'warn' | 'fail';

/** What one check found. */
export interface Finding {
  readonly check: string;
  readonly result: Result;
  /** What is so, with names and numbers. */
  readonly says: string;
  /** What follows from it; absent when all is well. */
  readonly means?: string;
  /** What to do about it. */
  readonly todo?: string;
}

export const ok = (check: string, says: string): Finding => ({ check, result: 'ok', says });

export const warn = (check: string, text: Omit<Finding, 'check' | 'result'>): Finding => ({
  check,
  result: 'warn',
  ...text,
});

export const fail = (check: string, text: Omit<Finding, 'check' | 'result'>): Finding => ({
  check,
  result: 'fail',
  ...text,
});

/** A check that lacks what it looks at. */
export const notChecked = (check: string, { why, kind }: Pick<Unread, 'why' | 'kind'>): Finding =>
  warn(check, {
    says: `Not checked: ${why.replace(/\.$/, '')}.`,
    means: 'Whether this is well is not known.',
    todo:
      kind === 'forbidden'
        ? 'Let somebody with more rights run doctor.'
        : 'Mend first what the other findings say of it.',
  });

/** Runs a check on what was read, or says why it could not be. */
export function onRead<Value>(
  check: string,
  read: Read<Value>,
  look: (value: Value) => readonly Finding[],
): readonly Finding[] {
  return read.ok ? look(read.value) : [notChecked(check, read)];
}

/** The worst of them. */
export const worst = (findings: readonly Finding[]): Result =>
  findings.some(({ result }) => result === 'fail')
    ? 'fail'
    : findings.some(({ result }) => result === 'warn')
      ? 'warn'
      : 'ok';
