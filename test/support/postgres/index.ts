/** Real PostgreSQL servers for tests: 15 from Debian, newer ones from npm packages; pgbouncer from Debian. */
export { SERVER_VERSIONS } from './binaries.ts';
export type { Database, DatabaseOptions } from './database.ts';
export { program } from './debian-programs.ts';
export { openPgBouncer, type PgBouncer, type PgBouncerOptions } from './pgbouncer.ts';
export { openServer, type Server, type ServerOptions, type SharedServer } from './server.ts';
export { sharedServer } from './shared.ts';
