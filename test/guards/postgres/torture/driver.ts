/** Grants tokens to writer processes at random, thaws frozen ones late, and asks the table what happened. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../../../support/postgres/index.ts';
import type { FreezePoint, FromWriter, Report, ToWriter, WriterSettings } from './messages.ts';
import { randomFrom } from './random.ts';

export interface TortureOptions {
  readonly guarded: boolean;
  readonly writes: number;
  readonly seed: number;
  /** @default 5 */
  readonly processes?: number;
  /** @default 10 */
  readonly connections?: number;
}

export interface Outcome {
  readonly grants: number;
  readonly frozen: Readonly<Record<FreezePoint, number>>;
  readonly reports: Report;
  readonly sealMs: readonly number[];
  readonly sessionsEnded: number;
  /** Rows of the table. */
  readonly writes: number;
  /** Writes that came after a write with a greater token. */
  readonly late: number;
  /** Writes that came after a seal with a greater token. */
  readonly afterSeal: number;
}

class Writer {
  readonly frozen = { 'before-write': 0, 'before-commit': 0 };
  readonly sealMs: number[] = [];
  sessionsEnded = 0;
  stopped = false;
  report: Report | undefined;
  readonly #child: ChildProcess;
  readonly ready: Promise<unknown>;

  constructor(settings: WriterSettings) {
    this.#child = fork(join(import.meta.dirname, 'writer.ts'), [JSON.stringify(settings)]);
    this.ready = once(this.#child, 'message');
    this.#child.on('message', (message: FromWriter) => this.#take(message));
  }

  #take(message: FromWriter): void {
    if (message.kind === 'freezing') {
      this.stopped = true;
      this.frozen[message.point] += 1;
    } else if (message.kind === 'sealed') {
      this.sealMs.push(message.ms);
      this.sessionsEnded += message.ended;
    } else if (message.kind === 'report') {
      this.report = message.report;
    }
  }

  tell(message: ToWriter): void {
    this.#child.send(message);
  }

  thaw(): void {
    this.stopped = false;
    this.#child.kill('SIGCONT');
  }

  async finish(): Promise<void> {
    const exit = this.#child.exitCode === null ? once(this.#child, 'exit') : undefined;
    this.tell({ kind: 'stop' });
    // It may freeze once more on its way to the end.
    const thawing = setInterval(() => this.thaw(), 50);
    await exit;
    clearInterval(thawing);
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

const RESOURCE = 'torture/a';

const schema = (guarded: boolean) => `
  create table shop.history (seq bigserial primary key, token bigint not null);
  create table shop.seals (token bigint, seen bigint);
  ${guarded ? `select kilit.protect('shop.history', '${RESOURCE}');` : ''}
`;

export async function torture(database: Database, options: TortureOptions): Promise<Outcome> {
  const { guarded, writes, seed, processes = 5, connections = 10 } = options;
  const random = randomFrom(seed);
  await database.query(schema(guarded), undefined, 'owner');
  const writers = Array.from(
    { length: processes },
    (_, i) =>
      new Writer({
        url: database.url('app'),
        resource: RESOURCE,
        connections,
        guarded,
        freezeChance: 0.002,
        seed: seed + i + 1,
      }),
  );
  try {
    await Promise.all(writers.map((writer) => writer.ready));
    const grants = await grantUntil(database, writers, { writes, random });
    await Promise.all(writers.map((writer) => writer.finish()));
    return { grants, ...sumOf(writers), ...(await check(database)) };
  } finally {
    for (const writer of writers) writer.kill();
  }
}

interface GrantOptions {
  readonly writes: number;
  readonly random: () => number;
}

async function grantUntil(
  database: Database,
  writers: readonly Writer[],
  { writes, random }: GrantOptions,
): Promise<number> {
  let token = 0n;
  let grants = 0;
  let written = 0;
  while (written < writes) {
    token += 1n + BigInt(Math.floor(random() * 3));
    const awake = writers.filter((writer) => !writer.stopped);
    const holder = awake[Math.floor(random() * awake.length)];
    holder?.tell({ kind: 'grant', grant: { token: String(token), seal: random() < 0.8 } });
    grants += 1;
    // Now and then long enough for a seal to end the sessions of frozen holders.
    await sleep(random() < 0.15 ? 1000 : 20 + random() * 100);
    for (const writer of writers) if (writer.stopped && random() < 0.2) writer.thaw();
    const [row] = await database.query<{ n: string }>('select last_value as n from shop.history_seq_seq');
    written = Number(row?.n);
  }
  return grants;
}

function sumOf(writers: readonly Writer[]): Pick<Outcome, 'frozen' | 'reports' | 'sealMs' | 'sessionsEnded'> {
  const sum = (of: (writer: Writer) => number): number => writers.reduce((total, writer) => total + of(writer), 0);
  return {
    frozen: {
      'before-write': sum((w) => w.frozen['before-write']),
      'before-commit': sum((w) => w.frozen['before-commit']),
    },
    reports: {
      committed: sum((w) => w.report?.committed ?? 0),
      refused: sum((w) => w.report?.refused ?? 0),
      ended: sum((w) => w.report?.ended ?? 0),
      unexpected: writers.flatMap((w) => w.report?.unexpected ?? ['a writer ended without a report']),
    },
    sealMs: writers.flatMap((w) => w.sealMs),
    sessionsEnded: sum((w) => w.sessionsEnded),
  };
}

/** The oracle is the table alone: its sequence numbers are drawn inside the transactions that committed. */
async function check(database: Database): Promise<Pick<Outcome, 'writes' | 'late' | 'afterSeal'>> {
  const [row] = await database.query<{ writes: number; late: number; after_seal: number }>(`
    select count(*)::int as writes, (count(*) filter (where token < greatest_before))::int as late,
        (select count(*)::int from shop.history h
          where h.token < (select max(s.token) from shop.seals s where s.seen < h.seq)) as after_seal
      from (select token, max(token) over (order by seq rows between unbounded preceding and 1 preceding) as greatest_before from shop.history) h`);
  if (row === undefined) throw new Error('The table gave no answer.');
  return { writes: row.writes, late: row.late, afterSeal: row.after_seal };
}
