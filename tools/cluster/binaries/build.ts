/** Builds the cluster's programs from Go modules into the cache: once, only what is missing, nothing half. */
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findCommand, run } from '../exec.ts';
import { withMachineLock } from '../machine-lock.ts';
import { cacheDir } from '../paths.ts';
import { type Detail, step } from '../progress.ts';
import type { OnProgress } from '../types.ts';
import { type Product, renderGoMod, renderToolsGo } from './go-modules.ts';

/** A cold build of Kubernetes takes 8 minutes on 2 cores. */
const BUILD_TIMEOUT_SECONDS = 3600;
const WORK_PREFIX = '.build-';
const GO_ENV = { CGO_ENABLED: '0', GOFLAGS: '', GOWORK: 'off' };
const pinned = join(dirname(dirname(fileURLToPath(import.meta.url))), 'go');

export const productDir = (product: Product): string => join(cacheDir(), `${product.name}-v${product.version}`);

/** Returns the paths of the product's binaries, building those that the cache lacks. */
export async function ensureBinaries(
  product: Product,
  onProgress: OnProgress,
): Promise<Readonly<Record<string, string>>> {
  const dir = productDir(product);
  const paths = Object.fromEntries(Object.keys(product.binaries).map((name) => [name, join(dir, name)]));
  const isMissing = (name: string): boolean => !existsSync(join(dir, name));
  if (!Object.keys(product.binaries).some(isMissing)) return paths;
  requireGo(product);
  const onWait = (): void => onProgress(`…      waiting for another process that builds ${product.name}`);
  await withMachineLock({ scope: cacheDir(), name: `build-${product.name}-${product.version}`, onWait }, async () => {
    const missing = Object.keys(product.binaries).filter(isMissing); // The other process may have built it.
    if (missing.length === 0) return;
    await step(onProgress, `build ${product.name} ${product.version}: ${missing.join(', ')}`, (detail) =>
      buildInto(product, missing, detail),
    );
  });
  return paths;
}

function requireGo(product: Product): void {
  if (findCommand('go') !== undefined) return;
  throw new Error(
    `${product.name} ${product.version} must be built, and the command 'go' is missing. Install Go 1.26 or newer, or put the binaries ${Object.keys(product.binaries).join(', ')} into ${productDir(product)}.`,
  );
}

async function buildInto(product: Product, missing: readonly string[], detail: Detail): Promise<void> {
  const dir = productDir(product);
  await mkdir(dir, { recursive: true });
  for (const name of await readdir(dir)) {
    if (name.startsWith(WORK_PREFIX)) await rm(join(dir, name), { recursive: true, force: true }); // A killed build left it.
  }
  const work = await mkdtemp(join(dir, WORK_PREFIX)); // Never the same one: an orphaned `go build` may still write to its own.
  await mkdir(join(work, 'out'), { recursive: true });
  await prepareModule(product, work, detail);
  let packages = 0;
  const onErrorLine = (line: string): void => {
    if (!line.startsWith('go: ')) packages += 1;
    detail(packages === 0 ? line : `${packages} packages compiled, now ${line}`);
  };
  for (const name of missing) {
    packages = 0;
    const args = [
      'build',
      '-v',
      '-trimpath',
      '-buildvcs=false',
      '-ldflags',
      product.linkerFlags,
      '-o',
      join(work, 'out', name),
    ];
    await go([...args, product.binaries[name] ?? ''], work, onErrorLine);
    await chmod(join(work, 'out', name), 0o755);
    await rename(join(work, 'out', name), join(dir, name));
  }
  await rm(work, { recursive: true, force: true });
}

/** Takes the committed go.mod and go.sum, or resolves them anew for a version that is not the pinned one. */
async function prepareModule(product: Product, work: string, detail: Detail): Promise<void> {
  const committed = join(pinned, product.name);
  if (product.version === product.pinnedVersion && existsSync(join(committed, 'go.sum'))) {
    for (const file of await readdir(committed)) await copyFile(join(committed, file), join(work, file));
    return;
  }
  await resolveModule(product, work, detail);
}

/** Writes go.mod, go.sum and tools.go for the product into a folder. */
export async function resolveModule(product: Product, dir: string, detail: Detail): Promise<void> {
  detail('resolving modules');
  const { stdout } = await run('go', ['mod', 'download', '-json', `${product.module}@v${product.version}`], {
    env: GO_ENV,
  });
  const { GoMod } = JSON.parse(stdout) as { readonly GoMod: string };
  await writeFile(join(dir, 'go.mod'), renderGoMod(product, await readFile(GoMod, 'utf8')));
  await writeFile(join(dir, 'tools.go'), renderToolsGo(product));
  await go(['mod', 'tidy', '-e'], dir, detail);
}

const go = (args: readonly string[], cwd: string, onErrorLine: Detail): Promise<unknown> =>
  run('go', args, { cwd, env: GO_ENV, timeoutSeconds: BUILD_TIMEOUT_SECONDS, onErrorLine });
