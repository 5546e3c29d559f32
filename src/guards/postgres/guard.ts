import { LockError } from '../../core/lock-error.ts';
import type { Driver, Query } from './driver.ts';
import { enterError, guardError, SERIALIZATION_FAILURE, STALE, serverError, staleDetails } from './errors.ts';
import { type TokenInput, tokenText } from './token-input.ts';

export interface GuardOptions {
  /** What the token guards, 1 to 317 characters; by convention the lock, `namespace/name`. The same text as in `kilit.protect`. */
  readonly resource: string;
}

export interface SealOptions {
  /**
   * How long open transactions with older tokens may go on before their sessions are ended, in milliseconds, 0 to 60,000.
   *
   * @default 2000
   */
  readonly waitMs?: number;
}

export type Isolation = 'read committed' | 'repeatable read' | 'serializable';

export interface TransactionOptions {
  /** @default 'read committed' */
  readonly isolation?: Isolation;
}

/** A resource in PostgreSQL that accepts a write only with the newest fencing token. `Tx` is the driver's own transaction. */
export interface PostgresGuard<Tx> {
  readonly resource: string;
  /**
   * Raises the mark to `token`, so that older holders are refused even before this one writes. Call it once at the start,
   * before the first transaction, and again on each new primary after a failover.
   *
   * Ends sessions of older holders that keep a transaction open longer than `waitMs`; returns how many, within `waitMs`
   * and one second.
   *
   * @throws LockError `StaleToken`, `Blocked` (by a prepared transaction, or a session that it may not end), `InvalidConfig`, `Forbidden`
   */
  seal(token: TokenInput, options?: SealOptions): Promise<{ readonly endedSessions: number }>;
  /**
   * Runs `work` in a transaction that enters with `token` first, and commits.
   *
   * Guarantees: if it resolves, the work is committed, and no transaction with a greater token was committed before it. An error
   * of `work` rolls back and is rethrown as it is, unless it is the guard's own answer. `work` runs at most once: only
   * entering is tried again, once, after a serialization failure; one inside `work` is rethrown.
   *
   * Limits: use only `tx` inside, and await each statement; what goes through another connection is not guarded. Work that
   * ends the transaction and begins another (`ROLLBACK AND CHAIN`) is not noticed; protected tables refuse it. When the
   * connection breaks during COMMIT, the driver's error comes through and nobody knows whether it was committed.
   *
   * @throws LockError `StaleToken`: let the process exit; `NotEntered`, `Conflict`, `InvalidConfig`, `Forbidden`
   */
  transaction<T>(token: TokenInput, work: (tx: Tx) => Promise<T>, options?: TransactionOptions): Promise<T>;
}

const ISOLATIONS: readonly string[] = ['read committed', 'repeatable read', 'serializable'] satisfies Isolation[];
/** As kilit.check_resource. */
const RESOURCE = /^\P{Cc}{1,317}$/u;
const MAX_WAIT_MS = 60_000;

export function createGuard<Tx>(driver: Driver<Tx>, options: GuardOptions): PostgresGuard<Tx> {
  const resource: unknown = (options as GuardOptions | undefined)?.resource;
  if (typeof resource !== 'string' || !RESOURCE.test(resource) || !resource.isWellFormed()) {
    throw new LockError(
      'InvalidConfig',
      `Invalid resource ${JSON.stringify(resource)}: it must have 1 to 317 characters, none of them a control character or half of a surrogate pair, such as 'shop/billing'.`,
    );
  }

  async function sealOnce(token: string, waitMs: number): Promise<{ endedSessions: number }> {
    const rows = await driver.query('select kilit.seal($1::text, $2::text, $3::interval) as ended', [
      resource,
      token,
      `${waitMs} milliseconds`,
    ]);
    return { endedSessions: Number(rows[0]?.ended) };
  }

  return {
    resource,
    async seal(token, { waitMs = 2000 } = {}) {
      const text = tokenText(token);
      if (!Number.isInteger(waitMs) || waitMs < 0 || waitMs > MAX_WAIT_MS) {
        throw new LockError('InvalidConfig', `waitMs must be a whole number from 0 to ${MAX_WAIT_MS}, got ${waitMs}.`);
      }
      try {
        return await twiceIfConflict(() => sealOnce(text, waitMs));
      } catch (error) {
        await report(driver.query, resource, text, error);
        throw enterError(error, resource);
      }
    },
    async transaction(token, work, { isolation = 'read committed' } = {}) {
      const text = tokenText(token);
      if (typeof work !== 'function') {
        throw new LockError(
          'InvalidConfig',
          `The second argument must be the work, an async function of the transaction, got ${typeof work}.`,
        );
      }
      if (!ISOLATIONS.includes(isolation)) {
        throw new LockError(
          'InvalidConfig',
          `isolation must be one of '${ISOLATIONS.join("', '")}', got '${isolation}'.`,
        );
      }
      let entered = false;
      const once = () =>
        driver.transaction({ isolation, resource, token: text }, (tx) => {
          entered = true;
          return work(tx);
        });
      try {
        return await twiceIfConflict(once, () => !entered);
      } catch (error) {
        await report(driver.query, resource, text, error);
        throw entered ? guardError(error) : enterError(error, resource);
      }
    },
  };
}

async function twiceIfConflict<T>(attempt: () => Promise<T>, allowed: () => boolean = () => true): Promise<T> {
  try {
    return await attempt();
  } catch (error) {
    if (serverError(error)?.code !== SERIALIZATION_FAILURE || !allowed()) throw error;
    return attempt();
  }
}

/** How long a caller waits at most for the note of its refusal, which may need a connection of a busy pool. */
const REPORT_WITHIN_MS = 1000;

/** Notes a refusal, which the refused transaction cannot do itself. Best effort: the refusal is what the caller must learn. */
async function report(query: Query, resource: string, token: string, error: unknown): Promise<void> {
  const answer = serverError(error);
  if (answer?.code !== STALE) return;
  // `work` may have entered another resource.
  const refused = staleDetails(answer) ?? { resource, token };
  const noted = query('select kilit.report_refusal($1::text, $2::text)', [refused.resource, refused.token]).then(
    () => undefined,
    () => undefined,
  );
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, REPORT_WITHIN_MS);
  });
  await Promise.race([noted, late]);
  clearTimeout(timer);
}
