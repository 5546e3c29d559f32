/** Builds the images without a registry: buildah with local build contexts in place of the Dockerfile's first stages. */
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { build as buildBundles } from '../../build.ts';
import { CLOCK_IMAGE, EXAMPLE_IMAGE, KILIT_IMAGE, PAUSE_IMAGE, TEST_IMAGE } from '../constants.ts';
import { run } from '../exec.ts';
import { withMachineLock } from '../machine-lock.ts';
import { cacheDir, repositoryRoot, shortHash } from '../paths.ts';
import { step } from '../progress.ts';
import type { OnProgress } from '../types.ts';
import { faketimeBase } from './clock.ts';
import { bundleExample, postgresBase } from './example.ts';
import { busyboxBase, nodeBase, pauseBase } from './node-base.ts';

const here = import.meta.dirname;

/** An image as a file that containerd, Docker and Podman can load. */
export interface ImageArchive {
  readonly name: string;
  /** Changes when the content does. */
  readonly hash: string;
  readonly path: string;
}

interface Recipe {
  readonly dockerfile: string;
  /** Build context name → folder. */
  readonly contexts: Readonly<Record<string, string>>;
}

const RECIPES: Readonly<Record<string, (onProgress: OnProgress) => Promise<Recipe>>> = {
  [PAUSE_IMAGE]: async () => ({
    dockerfile: join(here, 'pause', 'Dockerfile'),
    contexts: { base: await pauseBase(join(here, '..', 'go', 'pause')) },
  }),
  [TEST_IMAGE]: async () => ({
    dockerfile: join(here, 'test', 'Dockerfile'),
    contexts: { base: await nodeBase(), busybox: await busyboxBase() },
  }),
  [KILIT_IMAGE]: async (onProgress) => {
    await step(onProgress, 'bundle', () => buildBundles({ log: onProgress }));
    return {
      dockerfile: join(repositoryRoot, 'Dockerfile'),
      contexts: { base: await nodeBase(), build: await bundleContext() },
    };
  },
  [CLOCK_IMAGE]: async (onProgress) => {
    await step(onProgress, 'bundle', () => buildBundles({ log: onProgress }));
    return {
      dockerfile: join(here, 'clock', 'Dockerfile'),
      contexts: { base: await nodeBase(), build: await bundleContext(), faketime: await faketimeBase(onProgress) },
    };
  },
  [EXAMPLE_IMAGE]: async (onProgress) => ({
    dockerfile: join(repositoryRoot, 'examples', 'paused-holder', 'Dockerfile'),
    contexts: {
      base: await nodeBase(),
      busybox: await busyboxBase(),
      postgres: await postgresBase(),
      build: await step(onProgress, 'bundle the example', exampleContext),
    },
  }),
};

export const isHarnessImage = (name: string): boolean => name in RECIPES;

/** Builds an image of this harness unless its archive is there for the same content. */
export function buildImage(name: string, onProgress: OnProgress = () => {}): Promise<ImageArchive> {
  const recipe = RECIPES[name];
  if (recipe === undefined) {
    throw new Error(
      `'${name}' is no image of this project: ${Object.keys(RECIPES).join(', ')}. Other images: give an archive.`,
    );
  }
  return withMachineLock({ scope: cacheDir(), name: 'images' }, async () => {
    await mkdir(join(cacheDir(), 'images'), { recursive: true });
    const { dockerfile, contexts } = await recipe(onProgress);
    const hash = await contentHash(dockerfile, contexts);
    const stem = name.replace(/[^a-z0-9.-]/g, '_');
    const path = join(cacheDir(), 'images', `${stem}-${hash}.tar`);
    if (!existsSync(path)) {
      await step(onProgress, `build image ${name}`, () => buildArchive({ name, dockerfile, contexts, path }));
      await removeOlder(stem, path);
    }
    return { name, hash, path };
  });
}

/** What the Dockerfile takes of its build stage: `src/dist/` without the library. */
async function bundleContext(): Promise<string> {
  const dir = join(cacheDir(), 'images', `context-${shortHash(repositoryRoot)}`);
  await rm(dir, { recursive: true, force: true });
  const dist = join(repositoryRoot, 'dist');
  const filter = (source: string): boolean => source !== join(dist, 'lib');
  await cp(dist, join(dir, 'src', 'dist'), { recursive: true, filter });
  return dir;
}

/** As its Dockerfile's build stage would leave it: `out/`. */
async function exampleContext(): Promise<string> {
  const dir = join(cacheDir(), 'images', `context-example-${shortHash(repositoryRoot)}`);
  await rm(dir, { recursive: true, force: true });
  await bundleExample(join(dir, 'out'));
  return dir;
}

/** Folders in the cache carry the identity of what they were made from in their name; what is built is read. */
async function contentHash(dockerfile: string, contexts: Readonly<Record<string, string>>): Promise<string> {
  const hash = createHash('sha256').update(await readFile(dockerfile));
  for (const [name, dir] of Object.entries(contexts)) {
    hash.update(`\0${name}\0${name === 'build' ? '' : dir}`);
    if (name !== 'build') continue;
    const entries = await readdir(dir, { recursive: true, withFileTypes: true });
    const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
    for (const file of files.toSorted()) hash.update(`\0${relative(dir, file)}\0`).update(await readFile(file));
  }
  return hash.digest('hex').slice(0, 16);
}

interface ArchiveJob extends Recipe {
  readonly name: string;
  readonly path: string;
}

/** The same content makes the same image, whenever it is built. */
const FIXED_TIME = ['--timestamp', '0'];
/** Half the time to unpack, against the default. */
const FAST = ['--compression-format', 'zstd', '--compression-level', '1'];

/** A storage of its own, thrown away: nothing is left in the machine's image store. */
async function buildArchive(job: ArchiveJob): Promise<void> {
  const images = join(cacheDir(), 'images');
  for (const name of await readdir(images)) {
    if (name.startsWith('storage-')) await rm(join(images, name), { recursive: true, force: true });
  }
  const work = await mkdtemp(join(images, 'storage-'));
  const store = ['--root', join(work, 'root'), '--runroot', join(work, 'run'), '--storage-driver', 'vfs'];
  const contexts = Object.entries(job.contexts).flatMap(([name, dir]) => ['--build-context', `${name}=${dir}`]);
  const context = join(work, 'context');
  await mkdir(context);
  const bud = [
    'bud',
    '--quiet',
    '--isolation',
    'chroot',
    ...FIXED_TIME,
    ...contexts,
    '-f',
    job.dockerfile,
    '-t',
    job.name,
  ];
  const file = join(work, 'image.tar');
  try {
    await run('buildah', [...store, ...bud, context]);
    await run('buildah', [...store, 'push', '--quiet', ...FAST, job.name, `oci-archive:${file}:${job.name}`]);
    await rename(file, job.path);
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Another checkout may share the cache and be about to load its own archive, so only those of former days go. */
async function removeOlder(stem: string, keep: string): Promise<void> {
  const images = join(cacheDir(), 'images');
  for (const file of await readdir(images)) {
    const path = join(images, file);
    if (!file.startsWith(`${stem}-`) || !file.endsWith('.tar') || path === keep) continue;
    const info = await stat(path).catch(() => undefined);
    if (info !== undefined && Date.now() - info.mtimeMs > KEPT_MS) await rm(path, { force: true });
  }
}

const KEPT_MS = 24 * 3600 * 1000;
