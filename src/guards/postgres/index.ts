/**
 * `kilit/guards/postgres`: PostgreSQL refuses writes with an old fencing token.
 *
 * Not promised: anything for tables that are not protected and transactions that do not enter; see docs/guards/postgres.md.
 */
export { LockError, type LockErrorCode, type StaleTokenDetails } from '../../core/lock-error.ts';
export type { GuardOptions, Isolation, PostgresGuard, SealOptions, TransactionOptions } from './guard.ts';
export { type PgClient, type PgPool, postgresGuard } from './pg.ts';
export { type PostgresJs, type PostgresJsTransaction, postgresJsGuard } from './postgres-js.ts';
export { installSql, uninstallSql } from './sql.ts';
export type { TokenInput } from './token-input.ts';
