/** From SQLSTATE to `LockError`. */
import { LockError, type LockErrorCode, type StaleTokenDetails } from '../../core/lock-error.ts';

/** What `pg` and `postgres` both put on the error of a statement. */
export interface ServerError {
  readonly code: string;
  readonly message: string;
  readonly detail?: string | undefined;
  readonly hint?: string | undefined;
  readonly severity?: string | undefined;
}

/** Query builders such as Drizzle wrap the server's error in their own, never deep. */
const MAX_CAUSES = 5;
/** Node's own codes, such as EPIPE, begin with an E; no SQLSTATE does. */
const SQLSTATE = /^(?!E)[0-9A-Z]{5}$/;

/** The server's answer in an error or in its causes; none in a `LockError`, which has been made of one already. */
export function serverError(error: unknown): ServerError | undefined {
  let candidate: unknown = error;
  for (let depth = 0; depth <= MAX_CAUSES && candidate instanceof Error; depth += 1) {
    if (candidate instanceof LockError) return undefined;
    const { code } = candidate as { code?: unknown };
    if (typeof code === 'string' && SQLSTATE.test(code)) return candidate as Error & ServerError;
    candidate = candidate.cause;
  }
  return undefined;
}

/** Whether the server closes the connection after this answer. The codes too, since a severity may come in any language. */
export const endsSession = ({ code, severity }: ServerError): boolean =>
  severity === 'FATAL' || severity === 'PANIC' || /^(08|57P|25P0[34])/.test(code);

export const SERIALIZATION_FAILURE = '40001';
export const STALE = 'KL001';

/** The guard's own answers, wherever in the transaction they came up; everything else stays as it is. */
export function guardError(error: unknown): unknown {
  const answer = serverError(error);
  if (answer === undefined) return error;
  switch (answer.code) {
    case STALE:
      return staleToken(answer, error);
    case 'KL002':
    case 'KL003':
      return new LockError('InvalidConfig', withHint(answer), { cause: error });
    case 'KL004':
      return new LockError('NotEntered', withHint(answer), { cause: error });
    case 'KL005':
      return new LockError('Blocked', withHint(answer), { cause: error, retryable: true });
    default:
      return error;
  }
}

/** What the first statement, kilit.enter or kilit.seal, answers when the guard is not there or not allowed. */
export function enterError(error: unknown, resource: string): unknown {
  const answer = serverError(error);
  if (answer === undefined) return error;
  const lockError = (code: LockErrorCode, message: string): LockError =>
    new LockError(code, message, { cause: error, retryable: code === 'Conflict' });
  switch (answer.code) {
    case SERIALIZATION_FAILURE:
      return lockError(
        'Conflict',
        `The mark of '${resource}' changed twice while this transaction began: ${answer.message}. Nothing was written; try again.`,
      );
    case '42501':
      return lockError(
        'Forbidden',
        `This database role may not use the guard: ${answer.message}. Let an administrator run: grant kilit_writer to ROLE`,
      );
    case '3F000':
    case '42883':
      return lockError(
        'InvalidConfig',
        `The guard is not installed in this database: ${answer.message}. Run: kilit guard postgres sql > kilit.sql && psql DATABASE -v ON_ERROR_STOP=1 --single-transaction -f kilit.sql`,
      );
    default:
      return guardError(error);
  }
}

/** Resource and both tokens of a refusal; undefined when a proxy or another program has cut or written the DETAIL. */
export function staleDetails({ detail }: ServerError): StaleTokenDetails | undefined {
  try {
    const { resource, token, mark } = JSON.parse(detail ?? '') as Partial<StaleTokenDetails>;
    const complete = [resource, token, mark].every((value) => typeof value === 'string');
    return complete ? ({ resource, token, mark } as StaleTokenDetails) : undefined;
  } catch {
    return undefined;
  }
}

function staleToken(answer: ServerError, cause: unknown): LockError {
  const details = staleDetails(answer);
  const refused =
    details === undefined
      ? `Write refused: ${answer.message}.`
      : `Write refused: token ${details.token} is older than ${details.mark}, the newest seen for '${details.resource}'.`;
  return new LockError('StaleToken', `${refused} This process is no longer the holder; let it exit.`, {
    cause,
    ...(details === undefined ? {} : { details }),
  });
}

const withHint = ({ message, hint }: ServerError): string =>
  `${message.charAt(0).toUpperCase()}${message.slice(1)}.${hint === undefined ? '' : ` ${hint}`}`;
