/** The guard's SQL, as files beside this module (and beside the bundle: tools/build.ts copies them). */
import { readdirSync, readFileSync } from 'node:fs';

const FOLDER = new URL('./sql/', import.meta.url);

/** SQL that installs the guard into a database, or upgrades it: run it in one transaction. */
export function installSql(): string {
  return readdirSync(FOLDER)
    .filter((name) => /^\d+-.*\.sql$/.test(name))
    .toSorted()
    .map((name) => readFileSync(new URL(name, FOLDER), 'utf8'))
    .join('\n');
}

/** SQL that removes the guard with all marks: nothing refuses an old token afterwards. */
export function uninstallSql(): string {
  return readFileSync(new URL('uninstall.sql', FOLDER), 'utf8');
}
