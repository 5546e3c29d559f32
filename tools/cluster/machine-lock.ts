import { createServer, type Server } from 'node:net';
import { shortHash } from './paths.ts';
import { sleep } from './progress.ts';

/** A cold build of Kubernetes takes minutes; who waits longer than this is told to look. */
const MAX_WAIT_SECONDS = 3600;

function listen(path: string): Promise<Server | undefined> {
  return new Promise((resolve, reject) => {
    const server = createServer((socket) => socket.destroy());
    server.once('error', (error: NodeJS.ErrnoException) =>
      error.code === 'EADDRINUSE' ? resolve(undefined) : reject(error),
    );
    server.listen(path, () => resolve(server));
  });
}

/**
 * Runs `work` while no other process on this machine does so under the same name and scope.
 *
 * The lock is a listening abstract Unix socket: the kernel frees it when its process dies, however that happens, so
 * that no stale lock can exist. Linux only; elsewhere `work` runs at once.
 */
export async function withMachineLock<T>(
  lock: { readonly scope: string; readonly name: string; readonly onWait?: () => void },
  work: () => Promise<T>,
): Promise<T> {
  if (process.platform !== 'linux') return work();
  const path = `\0kilit-${shortHash(lock.scope)}-${lock.name}`;
  const deadline = performance.now() + MAX_WAIT_SECONDS * 1000;
  let server = await listen(path);
  if (server === undefined) lock.onWait?.();
  while (server === undefined) {
    if (performance.now() > deadline) throw new Error(`Another process holds '${lock.name}' for ${MAX_WAIT_SECONDS} s`);
    await sleep(200);
    server = await listen(path);
  }
  try {
    return await work();
  } finally {
    server.close();
  }
}
