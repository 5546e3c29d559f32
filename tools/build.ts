/**
 * `npm run build`: bundles the programs into `dist/`: operator.js and sidecar.js.
 *
 * Each is one file that Node runs without `node_modules`; an entry that does not exist yet is skipped, and said.
 */
import { existsSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build as esbuild } from 'esbuild';

const root = join(import.meta.dirname, '..');

/** Bundle → entry. */
const ENTRIES: Readonly<Record<string, string>> = {
  operator: 'src/operator/main.ts',
  sidecar: 'src/sidecar/main.ts',
};

/** Dependencies in CommonJS call `require` for Node's own modules; an ES module has none unless it makes one. */
const BANNER =
  "import { createRequire as kilitCreateRequire } from 'node:module';\nconst require = kilitCreateRequire(import.meta.url);";

export interface BuildOptions {
  /** @default the repository's `dist` */
  readonly outdir?: string;
  readonly log?: (line: string) => void;
}

/** Returns the paths of the bundles that were written. */
export async function build({
  outdir = join(root, 'dist'),
  log = () => {},
}: BuildOptions = {}): Promise<readonly string[]> {
  const written: string[] = [];
  for (const [name, entry] of Object.entries(ENTRIES)) {
    if (!existsSync(join(root, entry))) {
      log(`skip   ${entry} does not exist yet`);
      continue;
    }
    const outfile = join(outdir, `${name}.js`);
    await esbuild({
      entryPoints: [join(root, entry)],
      outfile,
      bundle: true,
      format: 'esm',
      platform: 'node',
      target: 'node22.19',
      minifySyntax: true,
      legalComments: 'eof',
      banner: { js: BANNER },
      logLevel: 'warning',
    });
    log(`ok     ${relative(root, outfile)} (${((await stat(outfile)).size / 1024).toFixed(0)} KiB)`);
    written.push(outfile);
  }
  return written;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const written = await build({ log: (line) => console.log(line) });
  if (written.length === 0) console.log('Nothing to bundle.');
}
