/**
 * `npm run bench:guard`: what the PostgreSQL guard costs a transaction like pgbench's, as a ratio of medians in one run.
 *
 * Two copies of pgbench's tables in one database, one protected; short runs in turn, with and without the guard, so that a
 * machine whose speed drifts drifts for both. Commits reach the disk (fsync on).
 */
import { execFile } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openServer, program } from '../../test/support/postgres/index.ts';

const ROUNDS = 7;
const SECONDS = 3;
const SCALE = 10;
const TABLES = ['pgbench_accounts', 'pgbench_tellers', 'pgbench_branches', 'pgbench_history'];

const script = (schema: string, begin: string): string => `\\set aid random(1, 100000 * ${SCALE})
\\set bid random(1, ${SCALE})
\\set tid random(1, 10 * ${SCALE})
\\set delta random(-5000, 5000)
${begin}UPDATE ${schema}.pgbench_accounts SET abalance = abalance + :delta WHERE aid = :aid;
SELECT abalance FROM ${schema}.pgbench_accounts WHERE aid = :aid;
UPDATE ${schema}.pgbench_tellers SET tbalance = tbalance + :delta WHERE tid = :tid;
UPDATE ${schema}.pgbench_branches SET bbalance = bbalance + :delta WHERE bid = :bid;
INSERT INTO ${schema}.pgbench_history (tid, bid, aid, delta, mtime) VALUES (:tid, :bid, :aid, :delta, CURRENT_TIMESTAMP);
END;
`;

const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;

await using server = await openServer({ settings: { fsync: 'on' } });
const database = await server.createDatabase();
const pgbench = program('pgbench');
const run = promisify(execFile);
console.log(`PostgreSQL ${server.version}; filling the tables`);
await run(pgbench, ['-i', '-q', '-s', String(SCALE), database.url()]);
await database.query('create schema plain');
for (const table of TABLES) {
  await database.query(`create table plain.${table} (like public.${table} including all)`);
  await database.query(`insert into plain.${table} select * from public.${table}`);
  await database.query(`select kilit.protect('public.${table}', 'shop/bench')`);
}
await database.query('vacuum analyze');

const folder = await mkdtemp(join(tmpdir(), 'kilit-bench-'));
try {
  const plain = join(folder, 'plain.sql');
  const guarded = join(folder, 'guarded.sql');
  const enter = "SELECT kilit.enter('shop/bench', '4711');\n";
  await writeFile(plain, script('plain', 'BEGIN;\n'));
  // As the driver `pg` sends them: without a round trip in between.
  await writeFile(guarded, script('public', `\\startpipeline\nBEGIN;\n${enter}\\endpipeline\n`));
  /** Mean latency of a transaction in one short run, in milliseconds. */
  const latency = async (file: string, clients: number): Promise<number> => {
    const args = [
      '-n',
      '-M',
      'prepared',
      '-f',
      file,
      '-c',
      String(clients),
      '-j',
      '2',
      '-T',
      String(SECONDS),
      database.url(),
    ];
    const { stdout } = await run(pgbench, args);
    return Number(/latency average = ([0-9.]+)/.exec(stdout)?.[1]);
  };
  for (const clients of [1, 16]) {
    const without: number[] = [];
    const withGuard: number[] = [];
    for (let round = 1; round <= ROUNDS; round += 1) {
      without.push(await latency(plain, clients));
      withGuard.push(await latency(guarded, clients));
      console.log(
        `${clients} connections, round ${round} of ${ROUNDS}: ${without.at(-1)} ms without, ${withGuard.at(-1)} ms with`,
      );
    }
    const ratio = median(withGuard) / median(without);
    console.log(
      `${clients} connections: median ${median(without)} ms without, ${median(withGuard)} ms with the guard: ratio ${ratio.toFixed(2)}`,
    );
  }
} finally {
  await rm(folder, { recursive: true, force: true });
}
