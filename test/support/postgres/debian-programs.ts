/** PostgreSQL's server and clients and pgbouncer as Debian packages them: the newest version that the machine has. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { findCommand } from '../../../tools/cluster/exec.ts';
import { ensureCommands, type Packages } from '../../../tools/debian.ts';

const VERSIONS_FOLDER = '/usr/lib/postgresql';

const PACKAGES: Packages = {
  postgres: 'postgresql',
  pgbench: 'postgresql',
  psql: 'postgresql-client',
  pg_basebackup: 'postgresql-client',
  pgbouncer: 'pgbouncer',
};

/** Major versions below a folder such as `/usr/lib/postgresql`, newest first; beta folders and others are passed over. */
function versionFolders(): readonly number[] {
  try {
    const names = readdirSync(VERSIONS_FOLDER).filter((name) => /^\d+$/.test(name));
    return names.map(Number).toSorted((a, b) => b - a);
  } catch {
    return [];
  }
}

const binOf = (version: number): string => join(VERSIONS_FOLDER, String(version), 'bin');

/** The newest version whose server is installed; folders of clients alone do not count. */
export function debianVersion(): number | undefined {
  return versionFolders().find((version) => findCommand(join(binOf(version), 'postgres')) !== undefined);
}

/** The folder of Debian's server programs and their version, or undefined. */
export function debianServer(): { readonly version: number; readonly bin: string } | undefined {
  const version = debianVersion();
  return version === undefined ? undefined : { version, bin: binOf(version) };
}

/** The program itself: Debian's wrappers in `/usr/bin` look for clusters of their own. */
function findProgram(command: string): string | undefined {
  if (command === 'pgbouncer') return findCommand(command);
  if (command === 'postgres') return debianServer() && join(debianServer()?.bin ?? '', command);
  return versionFolders()
    .map((version) => findCommand(join(binOf(version), command)))
    .find((path) => path !== undefined);
}

/** Path of `psql`, `pgbench`, `pg_basebackup`, `pgbouncer`; throws when `ensurePrograms` has not been called. */
export function program(name: 'psql' | 'pgbench' | 'pg_basebackup' | 'pgbouncer'): string {
  const path = findProgram(name);
  if (path === undefined) throw new Error(`${name} is missing. Install what Debian calls ${PACKAGES[name]}`);
  return path;
}

/**
 * Installs what is missing through `apt-get`.
 *
 * Where Debian may start services, its package also starts a server of its own on port 5432; the tests leave it alone.
 */
export const ensurePrograms = (): Promise<void> =>
  ensureCommands(PACKAGES, { find: findProgram, onProgress: console.error });
