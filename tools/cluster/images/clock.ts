/** libfaketime for an image whose wall clock can be set: Debian's, x86-64. */
import { existsSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureCommands } from '../../debian.ts';
import { findCommand } from '../exec.ts';
import { cacheDir, shortHash } from '../paths.ts';
import type { OnProgress } from '../types.ts';
import { fileIdentity, makeOnce } from './node-base.ts';

const LIBRARY = '/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1';

/** A folder with `lib/faketime.so`. */
export async function faketimeBase(onProgress: OnProgress): Promise<string> {
  const find = (path: string): string | undefined => (existsSync(path) ? path : findCommand(path));
  await ensureCommands({ [LIBRARY]: 'libfaketime' }, { onProgress, find });
  return makeOnce(join(cacheDir(), `faketime-${shortHash(await fileIdentity(LIBRARY))}`), async (work) => {
    await mkdir(join(work, 'lib'));
    await copyFile(LIBRARY, join(work, 'lib', 'faketime.so'));
  });
}
