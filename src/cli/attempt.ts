import { ApiError } from '../kube/errors.ts';
import { isNotInstalled, missingRight } from './explain.ts';

/** What was read, or why it could not be. */
export type Read<Value> = { readonly ok: true; readonly value: Value } | Unread;

export interface Unread {
  readonly ok: false;
  readonly why: string;
  /** A right is missing, or what was to be read is. */
  readonly kind: 'forbidden' | 'absent';
}

/**
 * Reads what a command can do without: a refusal (403) or an absence (404) is a result.
 *
 * @throws whatever else goes wrong.
 */
export async function attempt<Value>(reading: Promise<Value>): Promise<Read<Value>> {
  try {
    return { ok: true, value: await reading };
  } catch (err) {
    if (!(err instanceof ApiError) || (err.status !== 403 && err.status !== 404)) throw err;
    if (isNotInstalled(err)) return { ok: false, kind: 'absent', why: 'the API server does not serve it' };
    return {
      ok: false,
      kind: err.status === 403 ? 'forbidden' : 'absent',
      why: missingRight(err.message) ?? err.message,
    };
  }
}

export const orElse = <Value>(read: Read<Value>, other: Value): Value => (read.ok ? read.value : other);
