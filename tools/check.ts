/**
 * `npm run check`: types, lint with the import rules per folder, formatting, dead code. All run; all faults are shown.
 */
import { spawnSync } from 'node:child_process';

const checks: readonly (readonly [name: string, command: readonly string[]])[] = [
  ['types', ['tsc']],
  ['lint', ['oxlint', '--type-aware', '--deny-warnings']],
  ['format', ['biome', 'check', '--error-on-warnings', '.']],
  ['dead code', ['knip']],
];

const failed: string[] = [];
for (const [name, [command, ...args]] of checks) {
  const startedAt = performance.now();
  const result = spawnSync(command ?? '', args, { stdio: 'inherit' });
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1);
  console.log(`${result.status === 0 ? 'ok    ' : 'FAILED'} ${name} (${seconds} s)`);
  if (result.status !== 0) failed.push(name);
}
if (failed.length > 0) {
  console.error(`${failed.length} of ${checks.length} checks failed: ${failed.join(', ')}`);
  process.exitCode = 1;
}
