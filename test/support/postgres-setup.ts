/** Global setup of the `postgres` tests: one server for each version, told to the tests by `inject`. */
import type { TestProject } from 'vitest/node';
import { availableServers, binVariable, serverBin } from './postgres/binaries.ts';
import { ensurePrograms } from './postgres/debian-programs.ts';
import { openServer, type Server } from './postgres/server.ts';

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await ensurePrograms();
  const { versions, absent } = availableServers();
  for (const reason of absent) console.error(reason);
  const servers: Server[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(servers.map((server) => server[Symbol.asyncDispose]()));
  };
  try {
    for (const version of versions) {
      process.env[binVariable(version)] = await serverBin(version);
      servers.push(await openServer({ version }));
    }
  } catch (error) {
    await stop();
    throw error;
  }
  const addresses = servers.map(({ version, host, port, socketFolder }) => ({ version, host, port, socketFolder }));
  project.provide('postgresServers', addresses);
  return stop;
}
