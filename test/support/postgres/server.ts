/** A PostgreSQL server of a test's own. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { availableServers, serverBin } from './binaries.ts';
import { copyForStandby, initialise } from './data-folder.ts';
import { createDatabase, createLoginRoles, type Database, type DatabaseOptions } from './database.ts';
import { ensurePrograms } from './debian-programs.ts';
import { type Folder, openFolder } from './folder.ts';
import { freePort } from './port.ts';
import { type PostmasterFiles, type StopMode, startPostmaster } from './postmaster.ts';

/** Where a server listens, without the power over it: what a shared server gives to tests. */
export interface ServerAddress {
  /** Major version. */
  readonly version: number;
  readonly host: string;
  readonly port: number;
  /** Folder of the Unix socket. */
  readonly socketFolder: string;
}

export interface SharedServer extends ServerAddress {
  createDatabase(options?: DatabaseOptions): Promise<Database>;
}

export interface Server extends SharedServer, AsyncDisposable {
  /** Of the postmaster; another after a restart. */
  readonly pid: number;
  /** For `pg_basebackup`, `pg_controldata` and the like, as the server's user. */
  readonly dataFolder: string;
  /** @default 'fast' */
  stop(mode?: StopMode): Promise<void>;
  /** A crash: SIGKILL to the postmaster and all its children; what was committed is there after `restart`. */
  kill(): Promise<void>;
  /** Starts it again on the same port and data; stops it first when it runs. Added settings stay. */
  restart(settings?: Readonly<Record<string, string>>): Promise<void>;
  /** All that it has logged. */
  log(): string;
}

export interface ServerOptions {
  /** @default the oldest there is, 15 */
  readonly version?: number;
  /** Over the defaults below, as `postgres -c` takes them. */
  readonly settings?: Readonly<Record<string, string>>;
  /** Starts as a hot standby of this server, which must be of Debian's version; `select pg_promote()` ends that. */
  readonly standbyOf?: SharedServer;
}

const DEFAULTS: Readonly<Record<string, string>> = {
  // Tests kill processes, not machines: what the kernel has, survives. Measurements turn it on.
  fsync: 'off',
  max_connections: '200',
  max_prepared_transactions: '10',
  wal_level: 'logical',
  // In the data directory: nothing stays in /dev/shm after a SIGKILL.
  dynamic_shared_memory_type: 'mmap',
  log_line_prefix: '%m [%p] %u@%d %a ',
};

const MAX_STARTS = 3;

/** Between the look for a free port and the start another program may take it; then another port is tried. */
async function startOnFreePort(files: PostmasterFiles, settings: Readonly<Record<string, string>>) {
  for (let starts = 1; ; starts += 1) {
    const port = await freePort();
    try {
      return { port, postmaster: await startPostmaster(files, { ...settings, port: String(port) }) };
    } catch (error) {
      if (starts === MAX_STARTS || !String(error).includes('already in use')) throw error;
    }
  }
}

async function openIn(folder: Folder, version: number, options: ServerOptions): Promise<Server> {
  const bin = await serverBin(version);
  const files = { bin, data: join(folder.path, 'data'), log: join(folder.path, 'server.log') };
  await (options.standbyOf === undefined ? initialise(bin, files.data) : copyForStandby(options.standbyOf, files.data));
  const fixed = { listen_addresses: '127.0.0.1', unix_socket_directories: folder.path };
  const settings = { ...DEFAULTS, ...options.settings, ...fixed };
  const first = await startOnFreePort(files, settings);
  const { port } = first;
  let { postmaster } = first;
  let added: Readonly<Record<string, string>> = {};

  const address: ServerAddress = { version, host: '127.0.0.1', port, socketFolder: folder.path };
  await createLoginRoles(address);
  const stop = async (mode: StopMode = 'fast'): Promise<void> => {
    if (postmaster.isRunning()) await postmaster.stop(mode);
  };
  return {
    ...address,
    dataFolder: files.data,
    get pid() {
      return postmaster.pid;
    },
    createDatabase: (options) => createDatabase(address, options),
    stop,
    kill: () => postmaster.kill(),
    restart: async (more = {}) => {
      await stop();
      added = { ...added, ...more };
      postmaster = await startPostmaster(files, { ...settings, ...added, port: String(port) });
    },
    log: () => readFileSync(files.log, 'utf8'),
    // Its data is of no more use: the folder's keeper ends it at once.
    [Symbol.asyncDispose]: () => folder.close(),
  };
}

/**
 * Starts a server with a data directory, Unix socket and port of its own; about 1.5 s.
 *
 * `await using` it, or dispose of it: that ends it and removes its data. Should this process die before, both happen too.
 */
export async function openServer(options: ServerOptions = {}): Promise<Server> {
  await ensurePrograms();
  const version = options.version ?? options.standbyOf?.version ?? availableServers().versions[0] ?? 0;
  const folder = openFolder(`kilit-pg${version}-`);
  try {
    return await openIn(folder, version, options);
  } catch (error) {
    await folder.close();
    throw error;
  }
}
