import { installSql, uninstallSql } from '../guards/postgres/sql.ts';
import type { Group } from './command.ts';
import { Exit } from './failure.ts';
import type { Io } from './io.ts';

const PSQL = 'psql "$DATABASE_URL" -v ON_ERROR_STOP=1 --single-transaction -f kilit.sql';
/** Not by a pipe: psql would take the empty output of a command that was not found for a success. */
export const INSTALL = `kilit guard postgres sql > kilit.sql && ${PSQL}`;
const UNINSTALL = `kilit guard postgres uninstall > kilit.sql && ${PSQL}`;

export const guardPostgres: Group = {
  kind: 'group',
  summary: 'The guard for PostgreSQL 15 and newer, as plain SQL',
  examples: [INSTALL, `psql "$DATABASE_URL" -c "select kilit.protect('shop.charge', 'shop/billing')"`],
  commands: {
    sql: {
      kind: 'action',
      summary: 'Print the SQL that installs or upgrades the guard in a database',
      help: `Prints SQL that makes schema 'kilit' with its functions, views and roles. Run it once for each database, as a
superuser or the database's owner; again to upgrade: marks and protected tables stay.
Nothing is refused before a table is protected or a program enters.`,
      examples: [INSTALL, 'kilit guard postgres sql > migrations/0042-kilit.sql'],
      run: (_, io) => print(io, installSql()),
    },
    uninstall: {
      kind: 'action',
      summary: 'Print the SQL that removes the guard with all its marks',
      help: `Prints SQL that drops schema 'kilit', the triggers on protected tables, and the roles if nothing else needs them.
Nothing refuses an old token afterwards, and the marks are lost.`,
      examples: [UNINSTALL],
      run: (_, io) => print(io, uninstallSql()),
    },
  },
};

function print(io: Io, sql: string): number {
  io.out(sql);
  return Exit.ok;
}
