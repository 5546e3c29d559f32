/**
 * A process that believes to hold the lock: several connections write without pause with the token of its last grant, and go
 * on for a while after the first refusal, as a busy program would. Now and then it freezes in the middle of a transaction.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import {
  type FreezePoint,
  type FromWriter,
  type Grant,
  SEAL_WAIT_MS,
  type ToWriter,
  type WriterSettings,
} from './messages.ts';
import { randomFrom } from './random.ts';

/** Refusals after which a process believes that it has lost the lock. */
const REFUSALS_BEFORE_GIVING_UP = 20;

const settings = JSON.parse(process.argv[2] ?? '') as WriterSettings;
const random = randomFrom(settings.seed);
const report = { committed: 0, refused: 0, ended: 0, unexpected: [] as string[] };
let token: string | undefined;
let refusals = 0;
const stopping = new AbortController();

const send = (message: FromWriter): void => {
  process.send?.(message);
};

async function connect(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: settings.url, application_name: `writer-${settings.seed}` });
  client.on('error', () => {});
  await client.connect();
  return client;
}

function maybeFreeze(point: FreezePoint): void {
  if (random() >= settings.freezeChance / 2) return;
  send({ kind: 'freezing', point });
  process.kill(process.pid, 'SIGSTOP');
}

async function transaction(client: pg.Client, mine: string): Promise<void> {
  await client.query('begin');
  if (settings.guarded) await client.query('select kilit.enter($1::text, $2::text)', [settings.resource, mine]);
  maybeFreeze('before-write');
  await client.query('insert into history (token) values ($1)', [mine]);
  maybeFreeze('before-commit');
  await client.query('commit');
  report.committed += 1;
}

const ADMIN_SHUTDOWN = '57P01';

async function write(): Promise<void> {
  let client = await connect();
  while (!stopping.signal.aborted) {
    const mine = token;
    if (mine === undefined) {
      await sleep(2);
      continue;
    }
    try {
      await transaction(client, mine);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      if (code === 'KL001') {
        report.refused += 1;
        await client.query('rollback');
        if (token === mine && ++refusals >= REFUSALS_BEFORE_GIVING_UP) token = undefined;
        continue;
      }
      if (code === ADMIN_SHUTDOWN || /terminated|not queryable|closed the connection/.test(message)) report.ended += 1;
      else report.unexpected.push(`${code} ${message}`);
      await client.end().catch(() => {});
      client = await connect();
    }
  }
  await client.end().catch(() => {});
}

/** Seals, and notes which writes came before: no older token may be found after that. */
async function takeOver(grant: Grant): Promise<void> {
  if (settings.guarded && grant.seal) {
    const client = await connect();
    try {
      const startedAt = performance.now();
      const { rows } = await client.query('select kilit.seal($1::text, $2::text, $3::interval) as ended', [
        settings.resource,
        grant.token,
        `${SEAL_WAIT_MS} milliseconds`,
      ]);
      send({ kind: 'sealed', ms: performance.now() - startedAt, ended: rows[0].ended as number });
      await client.query('insert into seals (token, seen) select $1::bigint, coalesce(max(seq), 0) from history', [
        grant.token,
      ]);
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      if (code === 'KL001') return; // a newer grant was faster
      if (code !== ADMIN_SHUTDOWN) report.unexpected.push(`seal: ${code} ${message}`);
    } finally {
      await client.end().catch(() => {});
    }
  }
  refusals = 0;
  token = grant.token;
}

async function finish(): Promise<void> {
  await writing;
  send({ kind: 'report', report });
  process.disconnect();
}

const writing = Promise.all(Array.from({ length: settings.connections }, write));
process.on('message', (message: ToWriter) => {
  if (message.kind === 'grant') {
    void takeOver(message.grant);
    return;
  }
  stopping.abort();
  void finish();
});
send({ kind: 'ready' });
