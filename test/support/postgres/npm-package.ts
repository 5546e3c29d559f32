/** PostgreSQL's server as the optional npm dependencies `postgresql-16|17|18` bring it: initdb, pg_ctl and postgres. */
import { existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { repositoryRoot } from '../../../tools/cluster/paths.ts';

export const NPM_VERSIONS: readonly number[] = [16, 17, 18];

/** The folder that holds `bin`, `lib` and `share`, or undefined when npm left the package out. */
export function nativeFolder(version: number): string | undefined {
  const folder = join(repositoryRoot, 'node_modules', `postgresql-${version}`, 'native');
  return existsSync(join(folder, 'bin/postgres')) ? folder : undefined;
}

/**
 * Adds the symbolic links that npm's archive format cannot carry.
 *
 * The package's postinstall script does that too, but npm may run without scripts. Links that are there stay.
 */
export function addLinks(native: string): void {
  const list = join(native, 'pg-symlinks.json');
  if (!existsSync(list)) return;
  const links = JSON.parse(readFileSync(list, 'utf8')) as readonly {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) {
    const path = join(native, '..', target);
    if (existsSync(path)) continue;
    mkdirSync(dirname(path), { recursive: true });
    try {
      symlinkSync(relative(dirname(target), source), path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error; // Another worker was faster.
    }
  }
}
