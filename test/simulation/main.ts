/** `npm run sim`: runs the simulation with many seeds, or one seed to look at. */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { leaveOutClientNode, plant } from './mutations/hooks.ts';
import { MUTATIONS } from './mutations/mutations.ts';
import { type Finding, search } from './mutations/search.ts';
import { runCrew, total } from './run/crew.ts';
import type { Failure } from './run/messages.ts';

const HELP = `npm run sim -- [OPTIONS]

Runs the deterministic simulation: the real operator and sidecars in a simulated cluster with faults, all of it
determined by a seed. docs/spec.md has the invariants.

  --runs N        how many seeds (default 1000)
  --seed S        the first of them (default 1)
  --jobs J        threads (default: one per core)
  --keep-going    do not end at the first failure
  --verbose       print what happens, line by line; with --runs 1
  --faults I,J    only these faults of the seed's schedule, or none; with --runs 1
  --pods A,B      only these Pods; with --runs 1
  --mutations     plant each fault in turn, and tell how many seeds it takes to find it
  --mutation M    plant one fault: ${MUTATIONS.map(({ name }) => name).join(', ')}

Examples
  npm run sim -- --runs 10000 --seed 1
  npm run sim -- --seed 4711 --runs 1 --verbose
  npm run sim -- --seed 4711 --runs 1 --faults 2,5 --verbose
  npm run sim -- --runs 500 --mutation deadline-from-reply
  npm run sim -- --mutations --jobs 1
`;

const { values } = parseArgs({
  options: {
    runs: { type: 'string', default: '1000' },
    seed: { type: 'string', default: '1' },
    jobs: { type: 'string', default: String(availableParallelism()) },
    faults: { type: 'string' },
    pods: { type: 'string' },
    mutation: { type: 'string' },
    mutations: { type: 'boolean', default: false },
    'keep-going': { type: 'boolean', default: false },
    verbose: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

function whole(name: 'runs' | 'seed' | 'jobs', least: number): number {
  const value = Number(values[name]);
  if (Number.isSafeInteger(value) && value >= least) return value;
  console.error(`--${name} must be a whole number of at least ${least}, got ${values[name]}`);
  return process.exit(2);
}

function printFailure(failure: Failure): void {
  console.log(`\nFAILED seed ${failure.seed}: ${failure.invariant}`);
  console.log(`  ${failure.text}, at ${(failure.atMs / 1000).toFixed(1)} s`);
  for (const line of failure.trace) console.log(`  ${line}`);
  for (const fault of failure.faults) console.log(`  fault ${fault}`);
  console.log(`  again: ${failure.replay}`);
}

async function runOne(seed: number): Promise<void> {
  leaveOutClientNode();
  const planted = MUTATIONS.find(({ name }) => name === values.mutation);
  if (planted !== undefined) plant(planted);
  const { runScenario } = await import('./run/run.ts');
  const { drawScenario } = await import('./run/scenario.ts');
  const { only } = await import('./run/shrink.ts');
  const faults = values.faults?.split(',').map(Number);
  const scenario = only(drawScenario(seed), { faults, pods: values.pods?.split(',') });
  const { violation, trace, events, grants, refused } = await runScenario(scenario, { traced: values.verbose });
  for (const line of trace) console.log(line);
  console.log(`Seed ${seed}: ${events} events, ${grants} grants, ${refused} writes with an old token refused.`);
  if (violation === undefined) return console.log('No violation.');
  console.log(`VIOLATION of ${violation.invariant} at ${(violation.atMs / 1000).toFixed(3)} s: ${violation.text}`);
  process.exitCode = 1;
}

async function runMany(from: number, runs: number): Promise<void> {
  const startedAt = performance.now();
  const seconds = () => (performance.now() - startedAt) / 1000;
  let done = 0;
  let printedAt = 0;
  const reports = await runCrew({
    from,
    runs,
    jobs: whole('jobs', 1),
    mutation: values.mutation,
    stopsAtFailure: !values['keep-going'],
    reported(report) {
      done += report.runs;
      for (const failure of report.failures) printFailure(failure);
      if (seconds() - printedAt < 5) return;
      printedAt = seconds();
      console.log(`${done} of ${runs} runs, ${(done / seconds()).toFixed(1)} runs/s`);
    },
  });
  const { runs: made, events, grants, refused, failures } = total(reports);
  console.log(
    `${made} runs from seed ${from} in ${seconds().toFixed(1)} s: ${(made / seconds()).toFixed(1)} runs/s, ` +
      `${events} events, ${grants} grants, ${refused} writes with an old token refused, ${failures.length} violations`,
  );
  if (failures.length > 0) process.exitCode = 1;
}

/** Each fault by one thread, so that the numbers are the same each time. */
async function findMutations(jobs: number): Promise<void> {
  const left = MUTATIONS.map(({ name }) => name);
  const found: Finding[] = [];
  const work = async () => {
    for (let name = left.shift(); name !== undefined; name = left.shift()) {
      const finding = await search(name);
      found.push(finding);
      console.log(`${found.length} of ${MUTATIONS.length}: ${name} found by seed ${finding.seeds ?? 'none'}`);
    }
  };
  await Promise.all(Array.from({ length: jobs }, work));
  const order = MUTATIONS.map(({ name }) => name);
  console.table(found.toSorted((a, b) => order.indexOf(a.mutation) - order.indexOf(b.mutation)));
  if (found.some(({ seeds }) => seeds === undefined)) process.exitCode = 1;
}

if (values.mutation !== undefined && !MUTATIONS.some(({ name }) => name === values.mutation)) {
  console.error(`--mutation must be one of ${MUTATIONS.map(({ name }) => name).join(', ')}, got ${values.mutation}`);
  process.exit(2);
}
if (values.help) console.log(HELP);
else if (values.mutations) await findMutations(whole('jobs', 1));
else if (values.verbose || whole('runs', 1) === 1) await runOne(whole('seed', 0));
else await runMany(whole('seed', 0), whole('runs', 1));
