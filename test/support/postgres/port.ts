import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below Linux's ephemeral ports and Kubernetes' node ports: no client's connection takes a stopped server's port. */
const FIRST_PORT = 20_000;
const LAST_PORT = 29_999;
const MAX_TRIES = 50;

const isFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)));
  });

/** A random port of 127.0.0.1 on which nothing listens just now. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const port = randomInt(FIRST_PORT, LAST_PORT + 1);
    if (await isFree(port)) return port;
  }
  throw new Error(`Found no free port between ${FIRST_PORT} and ${LAST_PORT} in ${MAX_TRIES} tries`);
}
