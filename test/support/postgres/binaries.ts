/** Which servers this machine can run, and from where. */
import { cp } from 'node:fs/promises';
import { join } from 'node:path';
import { debianServer } from './debian-programs.ts';
import { openFolder } from './folder.ts';
import { addLinks, NPM_VERSIONS, nativeFolder } from './npm-package.ts';
import { canRun } from './server-user.ts';

/** The oldest version that kilit claims; Debian 12 brings it. */
const OLDEST_VERSION = 15;

export interface Available {
  /** Ascending. */
  readonly versions: readonly number[];
  /** A sentence for each version that is claimed but not here. */
  readonly absent: readonly string[];
}

function reasonOfAbsence(version: number): string {
  if (NPM_VERSIONS.includes(version)) {
    return `PostgreSQL ${version} is left out: npm has not installed the optional dependency postgresql-${version} (Linux on x86-64 only)`;
  }
  return `PostgreSQL ${version} is left out: Debian's newest here is ${debianServer()?.version ?? 'none'}`;
}

export function availableServers(): Available {
  const debian = debianServer()?.version;
  const wanted = [...new Set([OLDEST_VERSION, ...NPM_VERSIONS, ...(debian === undefined ? [] : [debian])])];
  const here = (version: number): boolean => version === debian || nativeFolder(version) !== undefined;
  return {
    versions: wanted.filter(here).toSorted((a, b) => a - b),
    absent: wanted.filter((version) => !here(version)).map(reasonOfAbsence),
  };
}

/**
 * The versions that can be started, ascending, as this machine was when the module was loaded.
 *
 * Under vitest all claimed versions, or the global setup has printed why not.
 */
export const SERVER_VERSIONS: readonly number[] = availableServers().versions;

/** Set by the global setup for its workers: what had to be copied, is copied once for each run. */
export const binVariable = (version: number): string => `KILIT_POSTGRES_${version}_BIN`;

const copies = new Map<number, Promise<string>>();

/** A copy that the server's user may enter; removed when this process ends. */
async function copyNative(version: number, native: string): Promise<string> {
  const folder = openFolder(`kilit-postgresql-${version}-`);
  const copy = join(folder.path, 'native');
  await cp(native, copy, { recursive: true, verbatimSymlinks: true });
  if (!canRun(join(copy, 'bin/postgres'), '--version')) throw new Error(`${copy}/bin/postgres cannot be run`);
  return join(copy, 'bin');
}

/** The folder with `initdb` and `postgres` of a version, ready to be run by the server's user. */
export async function serverBin(version: number): Promise<string> {
  const given = process.env[binVariable(version)];
  if (given !== undefined) return given;
  const debian = debianServer();
  if (debian?.version === version) return debian.bin;
  const native = nativeFolder(version);
  if (native === undefined) throw new Error(reasonOfAbsence(version));
  addLinks(native);
  if (canRun(join(native, 'bin/postgres'), '--version')) return join(native, 'bin');
  const copy = copies.get(version) ?? copyNative(version, native);
  copies.set(version, copy);
  return copy;
}
