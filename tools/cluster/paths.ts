import { createHash } from 'node:crypto';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

/** The work tree: where `package.json` and the Dockerfile are. */
export const repositoryRoot: string = dirname(dirname(dirname(fileURLToPath(import.meta.url))));

/** Built binaries and images: may be deleted at any time, is filled again. `KILIT_CACHE_DIR` moves it. */
export function cacheDir(): string {
  return process.env['KILIT_CACHE_DIR'] ?? join(process.env['XDG_CACHE_HOME'] || join(homedir(), '.cache'), 'kilit');
}

/** One folder per cluster; deleted by `down`. */
export function clustersDir(): string {
  return join(process.env['XDG_STATE_HOME'] || join(homedir(), '.local', 'state'), 'kilit', 'clusters');
}

export function clusterDir(name: string): string {
  return join(clustersDir(), name);
}

/** A short name for a folder, for names that must be unique per folder and short. */
export function shortHash(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 12);
}
