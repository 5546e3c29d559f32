/**
 * `npm run build`: bundles the programs into `dist/` (operator.js, sidecar.js, kilit.js), each one file that Node runs without
 * `node_modules`; the guard's SQL beside them; and the library with its types into `dist/lib`.
 */
import { execFileSync } from 'node:child_process';
import { chmod, cp, rm, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build as esbuild } from 'esbuild';

const root = join(import.meta.dirname, '..');
const DIST = join(root, 'dist');

/** Read at run time, beside the module that reads it or beside its bundle. */
const SQL = join(root, 'src/guards/postgres/sql');

/** Bundle → entry. */
const ENTRIES: Readonly<Record<string, string>> = {
  operator: 'src/operator/main.ts',
  sidecar: 'src/sidecar/main.ts',
  kilit: 'src/cli/main.ts',
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
export async function build({ outdir = DIST, log = () => {} }: BuildOptions = {}): Promise<readonly string[]> {
  const written: string[] = [];
  for (const [name, entry] of Object.entries(ENTRIES)) {
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
      banner: { js: name === 'kilit' ? `#!/usr/bin/env node\n${BANNER}` : BANNER },
      logLevel: 'warning',
    });
    log(`ok     ${relative(root, outfile)} (${((await stat(outfile)).size / 1024).toFixed(0)} KiB)`);
    written.push(outfile);
  }
  await chmod(join(outdir, 'kilit.js'), 0o755);
  await rm(join(outdir, 'sql'), { recursive: true, force: true }); // a file of a former name would be installed too
  await cp(SQL, join(outdir, 'sql'), { recursive: true });
  return written;
}

/** Writes what `import 'kilit/…'` finds in the package, with its types, into `lib`. Returns the folder. */
export async function buildLibrary({ outdir = DIST, log = () => {} }: BuildOptions = {}): Promise<string> {
  const lib = join(outdir, 'lib');
  await rm(lib, { recursive: true, force: true });
  execFileSync('tsc', ['-p', 'tsconfig.build.json', '--outDir', lib], { cwd: root, stdio: 'inherit' });
  await cp(SQL, join(lib, 'guards/postgres/sql'), { recursive: true });
  log(`ok     ${relative(root, lib)}`);
  return lib;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const log = (line: string): void => console.log(line);
  await build({ log });
  await buildLibrary({ log });
}
