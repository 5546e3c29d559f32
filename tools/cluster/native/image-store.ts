import { createHash } from 'node:crypto';
import { createReadStream, existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { run } from '../exec.ts';
import type { ImageArchive } from '../images/image.ts';
import type { NodeLayout } from './layout.ts';

/** An archive that somebody else made, by path. */
export async function archiveOf(path: string): Promise<ImageArchive> {
  if (!existsSync(path)) {
    throw new Error(
      `'${path}' is neither an image of this project nor a file. Save it: buildah push NAME oci-archive:FILE:NAME`,
    );
  }
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return { name: resolve(path), hash: hash.digest('hex').slice(0, 16), path: resolve(path) };
}

/** Imports an archive unless this node has it with the same content. */
export async function loadIntoNode(node: NodeLayout, archive: ImageArchive): Promise<void> {
  const dir = join(node.dir, 'images');
  const marker = join(dir, archive.name.replace(/[^a-zA-Z0-9.-]/g, '_'));
  if ((await readFile(marker, 'utf8').catch(() => '')) === archive.hash) return;
  await run('ctr', ['-a', node.containerdSocket, '-n', 'k8s.io', 'images', 'import', archive.path]);
  await mkdir(dir, { recursive: true });
  await writeFile(`${marker}.new`, archive.hash);
  await rename(`${marker}.new`, marker);
}
