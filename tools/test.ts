/**
 * `npm test [-- FILTER …]`: the static checks, then every test: pure, chart and real cluster.
 *
 * With filters only those test files run, without the static checks: `npm test -- policies`.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';

const RESULTS = '.tmp/test-results.json';
const filters = process.argv.slice(2);

function run(command: string, args: readonly string[]): number {
  return spawnSync(command, args, { stdio: 'inherit' }).status ?? 1;
}

/** The plain closing line that any reader of a log understands. */
function closingLine(): string {
  if (!existsSync(RESULTS)) return 'no test has run';
  const results = JSON.parse(readFileSync(RESULTS, 'utf8')) as {
    readonly numPassedTests: number;
    readonly numFailedTests: number;
    readonly numPendingTests: number;
  };
  const { numPassedTests, numFailedTests, numPendingTests } = results;
  return `${numPassedTests} passed, ${numFailedTests} failed${numPendingTests > 0 ? `, ${numPendingTests} skipped` : ''}`;
}

mkdirSync('.tmp', { recursive: true });
let status = filters.length === 0 ? run('node', ['tools/check.ts']) : 0;
if (status === 0) {
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${RESULTS}`];
  status = run('vitest', ['run', ...reporters, ...filters]);
  console.log(closingLine());
}
process.exitCode = status;
