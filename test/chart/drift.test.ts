import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { repositoryRoot } from '../../tools/cluster/paths.ts';
import { generateAll } from '../../tools/generate/outputs.ts';

test('every generated file is what `npm run generate` would write now', async () => {
  for (const [path, text] of await generateAll()) {
    expect(await readFile(join(repositoryRoot, path), 'utf8'), `${path}: run npm run generate`).toBe(text);
  }
});
