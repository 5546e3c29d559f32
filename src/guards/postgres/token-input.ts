import { LockError } from '../../core/lock-error.ts';

/** A fencing token: the text of `FENCING_TOKEN`, or a bigint. A `number` is refused: it is not exact above 2^53. */
export type TokenInput = bigint | string;

const TOKEN = /^[1-9][0-9]{0,17}$/;

/** The token as decimal text. Throws `InvalidConfig` for all else, also for what gets past the types. */
export function tokenText(token: TokenInput): string {
  const given: unknown = token;
  if (typeof given === 'number') {
    throw new LockError(
      'InvalidConfig',
      `Fencing token ${given} is a number, which is not exact above 2^53. Pass the text of FENCING_TOKEN, or a bigint.`,
    );
  }
  const text = typeof given === 'bigint' ? given.toString() : given;
  if (typeof text === 'string' && TOKEN.test(text)) return text;
  const shown = typeof text === 'string' ? `'${text.slice(0, 80)}'` : String(text);
  throw new LockError(
    'InvalidConfig',
    `Invalid fencing token ${shown}: it must be a decimal integer from 1 to 999999999999999999. Pass FENCING_TOKEN as it is; without one this program does not hold the lock.`,
  );
}
