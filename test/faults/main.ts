/** `npm run faults`: injects faults into a real cluster while programs write under locks, and judges what they wrote. */
import { execFileSync } from 'node:child_process';
import { mkdir, writeFile } from 'node:fs/promises';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { CLOCK_IMAGE, KILIT_IMAGE, openCluster } from '../../tools/cluster/index.ts';
import { installArgs } from '../support/install.ts';
import { openKube } from '../support/kube.ts';
import { CLOCK_FAILPOINTS } from './failpoints/clocks.ts';
import { FAILPOINTS } from './failpoints/index.ts';
import { addToLedger, type LedgerEntry } from './judge/ledger.ts';
import { table } from './judge/report.ts';
import { failpointsOf } from './run.ts';
import { runSession } from './session.ts';
import { endLeftTraffic } from './traffic.ts';

const HELP = `Injects faults into a real cluster of two nodes while programs write under locks, and judges what they wrote.

  npm run faults                                        20 minutes, all failpoints, a random seed
  npm run faults -- --minutes 60 --seed 7               an hour, whose choices are those of seed 7
  npm run faults -- --only 'SIGSTOP pod,SIGKILL etcd'   some failpoints; --list shows all
  npm run faults -- --guard off --only 'SIGSTOP pod'    without the guard: the check must find corruption
  npm run faults -- --ledger                            adds the run to docs/evidence/faults.md

Exit code 0 when no rule of safety was broken and every lock became calm in time; the whole run is left as JSON in
.tmp/faults-SEED.json. With --guard off it is 0 when corruption was found.

Options
  --minutes N       how long faults are begun (default 20)
  --seed N          choices are the same for the same seed; the order of events is the machine's
  --only A,B        failpoints by name
  --locks N         locks under traffic (default 8), --contenders N for each (default 2)
  --guard on|off    default on
  --name NAME       of the cluster (default faults); --keep it up afterwards
  --ledger          add the run to the ledger
  --list, --help
`;

const { values: options } = parseArgs({
  options: {
    minutes: { type: 'string', default: '20' },
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
    only: { type: 'string' },
    locks: { type: 'string', default: '8' },
    contenders: { type: 'string', default: '2' },
    guard: { type: 'string', default: 'on' },
    name: { type: 'string', default: 'faults' },
    keep: { type: 'boolean', default: false },
    ledger: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

if (options.help) process.stdout.write(HELP);
else if (options.list)
  process.stdout.write(FAILPOINTS.map(({ name, level }) => `${level.padEnd(8)} ${name}\n`).join(''));
else process.exitCode = await main();

async function main(): Promise<number> {
  const [minutes, seed, locks, contenders] = [options.minutes, options.seed, options.locks, options.contenders].map(
    Number,
  ) as [number, number, number, number];
  const guard = options.guard === 'off' ? 'off' : 'on';
  const names = options.only?.split(',') ?? FAILPOINTS.map(({ name }) => name);
  const failpoints = failpointsOf(names);
  if (![minutes, seed, locks, contenders].every((number) => number >= 0))
    throw new Error('Numbers must not be negative');
  const startedAt = performance.now();
  const begunAt = new Date();
  const say = (line: string): void =>
    void process.stderr.write(`${((performance.now() - startedAt) / 1000).toFixed(0).padStart(5)} s  ${line}\n`);
  const only = options.only === undefined ? '' : ` --only '${options.only}'`;
  const command = `npm run faults -- --minutes ${minutes} --seed ${seed} --locks ${locks} --contenders ${contenders}${only}${guard === 'off' ? ' --guard off' : ''}`;
  say(`seed ${seed}: ${command}`);

  const cluster = await openCluster({ name: options.name, nodes: 2, onProgress: say });
  // Without its failpoints the image is the one that users run.
  const clocks = failpoints.some((failpoint) => CLOCK_FAILPOINTS.includes(failpoint));
  const image = clocks ? CLOCK_IMAGE : KILIT_IMAGE;
  await cluster.loadImage(image);
  const repository = ['--set', `image.repository=${image.split(':')[0]}`];
  await cluster.helm([...installArgs({ replicas: 2 }), ...repository]);
  const kube = openKube(cluster.kubeconfigPath, cluster.kubectlPath);
  await endLeftTraffic(kube);
  const stop = new AbortController();
  process.once('SIGINT', () => {
    say('note   stopping after the present fault; a second Ctrl-C ends at once');
    stop.abort();
  });
  const commit = execFileSync('git', ['rev-parse', '--short=12', 'HEAD'], { encoding: 'utf8' }).trim();
  const loadBefore = loadavg()[0] ?? 0;
  const session = await runSession({
    cluster,
    kube,
    seed,
    minutes,
    locks,
    contenders,
    guard,
    failpoints,
    say,
    signal: stop.signal,
  });
  kube.close();

  const entry: LedgerEntry = {
    date: begunAt.toISOString().slice(0, 10),
    seed,
    commit,
    kubernetes: cluster.kubernetesVersion,
    minutes: Math.round((performance.now() - startedAt) / 6000) / 10,
    locks,
    contenders,
    load: [loadBefore, loadavg()[0] ?? 0].map((load) => Math.round(load * 10) / 10),
    grants: session.grants,
    guardedWrites: session.guardedWrites,
    refusals: session.refusals,
    lateUnguarded: session.lateUnguarded,
    gaps: session.gaps,
    rows: session.rows,
  };
  await mkdir('.tmp', { recursive: true });
  await writeFile(`.tmp/faults-${seed}.json`, JSON.stringify({ ...entry, ...session }, bigints, 1));
  process.stdout.write(`${table(session.rows)}\n\n`);
  process.stdout.write(
    `${session.grants} grants, ${session.guardedWrites} guarded writes, ${session.refusals} refused; ` +
      `${session.lateUnguarded} late writes to the table without a guard; ${session.gaps} gaps in what was seen\n`,
  );
  for (const { rule, lock, what } of session.violations.slice(0, 20))
    process.stdout.write(`VIOLATION ${lock}: ${rule}: ${what}\n`);
  for (const sentence of session.stuck) process.stdout.write(`STUCK ${sentence}\n`);
  process.stdout.write(`${session.violations.length} safety violations, ${session.stuck.length} not calm in time\n`);
  if (options.ledger && guard === 'on') await addToLedger(entry);
  if (!options.keep) await cluster.down();
  const good = guard === 'off' ? session.violations.length > 0 : session.violations.length + session.stuck.length === 0;
  if (!good) process.stdout.write(`FAILED; again by: ${command}\n`);
  return good ? 0 : 1;
}

function bigints(_: string, value: unknown): unknown {
  return typeof value === 'bigint' ? String(value) : value;
}
