/** The SQL of the guard, as a user of kilit installs it. */
export { installSql as guardSql, uninstallSql } from '../../../src/guards/postgres/sql.ts';
