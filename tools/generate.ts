/**
 * `npm run generate`: makes the files that are made from others. `test/chart` fails when one is not up to date.
 *
 *   charts/kilit/files/crd.yaml  →  src/api/generated/distributedlock.ts
 *   charts/kilit                 →  manifests/kilit.yaml, src/api/generated/policies.ts
 *   src/cli                      →  docs/cli.md
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { repositoryRoot } from './cluster/paths.ts';
import { generateAll } from './generate/outputs.ts';

for (const [path, text] of await generateAll()) {
  const file = join(repositoryRoot, path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, text);
  console.log(path);
}
