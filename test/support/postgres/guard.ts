/** The SQL of the guard, as a user of kilit installs it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { repositoryRoot } from '../../../tools/cluster/paths.ts';

const FOLDER = join(repositoryRoot, 'src/guards/postgres/sql');

export function guardSql(): string {
  const names = readdirSync(FOLDER).filter((name) => /^\d.*\.sql$/.test(name));
  return names
    .toSorted()
    .map((name) => readFileSync(join(FOLDER, name), 'utf8'))
    .join('\n');
}

export function uninstallSql(): string {
  return readFileSync(join(FOLDER, 'uninstall.sql'), 'utf8');
}
