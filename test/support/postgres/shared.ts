/** The servers that the global setup started: one for each version, for all test files. */
import { inject } from 'vitest';
import { createDatabase } from './database.ts';
import type { ServerAddress, SharedServer } from './server.ts';

declare module 'vitest' {
  export interface ProvidedContext {
    readonly postgresServers: readonly ServerAddress[];
  }
}

/** The running server of a version. @default the oldest there is, 15 */
export function sharedServer(version?: number): SharedServer {
  const servers = inject('postgresServers');
  const address = version === undefined ? servers[0] : servers.find((server) => server.version === version);
  if (address === undefined) {
    throw new Error(`No PostgreSQL ${version}; there are: ${servers.map((server) => server.version).join(', ')}`);
  }
  return { ...address, createDatabase: (options) => createDatabase(address, options) };
}
