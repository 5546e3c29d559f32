/**
 * The program of the fault harness's Pods: it does all that a late program could do wrong, as often as it can.
 *
 * Five times a second it writes a line into a file of the machine (`life.ts` reads them), a row into a table without a guard, and
 * a row into a table with one. A program that is refused should exit; this one goes on, so that what stops it is the
 * kubelet, and so that each late write is tried.
 *
 *   LOCK, GUARD=off, DATABASE_URL, FENCING_TOKEN, HOSTNAME
 */
import { randomUUID } from 'node:crypto';
import { appendFileSync, readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { postgresGuard } from 'kilit/guards/postgres';
import pg from 'pg';
import { HISTORY_DIR } from './names.ts';

const { LOCK = '', GUARD, DATABASE_URL = '', FENCING_TOKEN: token = '', HOSTNAME: pod = '' } = process.env;
const TICK_MS = 200;
/** A connection that was cut is given up; what is on its way may still arrive. */
const QUERY_MS = 3000;

const life = randomUUID().slice(0, 8);
const fromFile = (): string => {
  try {
    return readFileSync('/run/kilit/token', 'utf8').trim();
  } catch {
    return '';
  }
};
const note = (did: string, more: object = {}): void =>
  appendFileSync(`${HISTORY_DIR}/${LOCK}`, `${JSON.stringify({ pod, life, token, did, at: Date.now(), ...more })}\n`);

process.on('SIGTERM', () => {
  note('got SIGTERM');
  process.exit(0);
});
note('started', { file: fromFile() });
setInterval(() => note('ran'), TICK_MS);

const connections = {
  connectionString: DATABASE_URL,
  connectionTimeoutMillis: QUERY_MS,
  query_timeout: QUERY_MS,
  max: 2,
};
const openPool = (): pg.Pool => {
  const pool = new pg.Pool({ ...connections, application_name: pod });
  pool.on('error', () => {});
  pool.on('connect', (client) => client.on('error', () => {}));
  return pool;
};
const plain = openPool();
const guarded = openPool();
const guard = postgresGuard(guarded, { resource: LOCK });
const values = [LOCK, token, pod, life];
const insert = (table: string): string =>
  `insert into shop.${table} (lock, token, pod, life) values ($1, $2::bigint, $3, $4)`;

async function forEver(what: string, work: () => Promise<unknown>): Promise<never> {
  let failed = '';
  for (;;) {
    try {
      await work();
      failed = '';
    } catch (error) {
      const text = String(error).split(' than ')[0] ?? '';
      if (text !== failed) note(`failed: ${what}`, { error: String(error).slice(0, 200) });
      failed = text;
    }
    await sleep(TICK_MS);
  }
}

let sealed = GUARD === 'off';
await Promise.all([
  forEver('unguarded', () => plain.query(insert('unguarded'), values)),
  forEver('guarded', async () => {
    if (!sealed) {
      await guard.seal(token);
      await plain.query(insert('sealed'), values);
      sealed = true;
    }
    if (GUARD === 'off') await guarded.query(insert(`guarded_${LOCK}`), values);
    else await guard.transaction(token, (tx) => tx.query(insert(`guarded_${LOCK}`), values));
  }),
]);
