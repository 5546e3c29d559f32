/** The package as npm would publish it, used from a folder of its own. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { build, buildLibrary } from '../../tools/build.ts';
import { repositoryRoot } from '../../tools/cluster/paths.ts';

const CONSUMER = `
import pg from 'pg';
import postgres from 'postgres';
import { installSql, LockError, postgresGuard, postgresJsGuard } from 'kilit/guards/postgres';
const guard = postgresGuard(new pg.Pool(), { resource: 'shop/billing' });
export const charge = (): Promise<number | null> =>
  guard.transaction('5', async (client: pg.PoolClient) => (await client.query('select 1')).rowCount);
export const chargeJs = (): Promise<postgres.Row | undefined> =>
  postgresJsGuard(postgres(), { resource: 'shop/billing' }).transaction(5n, async (sql: postgres.TransactionSql) => (await sql\`select 1\`)[0]);
// @ts-expect-error a number is no token
export const wrong = () => guard.seal(5);
console.log(installSql().includes('create schema'), new LockError('StaleToken', 'x') instanceof Error);
`;

const FILES = ['package.json', 'README.md', 'LICENSE'];
const modules = join(repositoryRoot, 'node_modules');

let folder = '';
const run = (command: string, ...args: string[]): string =>
  execFileSync(command, args, { cwd: folder, encoding: 'utf8' });

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'kilit-package-'));
  // Built here and not into the work tree, where a test on a cluster may be reading.
  const source = join(folder, 'source');
  mkdirSync(source);
  for (const name of FILES) copyFileSync(join(repositoryRoot, name), join(source, name));
  await build({ outdir: join(source, 'dist') });
  await buildLibrary({ outdir: join(source, 'dist') });
  run('npm', 'pack', '--silent', './source');
  run('tar', '-xzf', readdirSync(folder).find((name) => name.endsWith('.tgz')) ?? '');
  mkdirSync(join(folder, 'node_modules'));
  run('mv', 'package', 'node_modules/kilit');
  for (const name of readdirSync(modules)) {
    if (!name.startsWith('.')) symlinkSync(join(modules, name), join(folder, 'node_modules', name));
  }
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}');
  writeFileSync(join(folder, 'consumer.ts'), CONSUMER);
}, 120_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a program outside imports the guard with its types and its SQL', () => {
  run('tsc', '--noEmit', '--strict', '--module', 'nodenext', '--target', 'es2024', '--types', 'node', 'consumer.ts');
  expect(run(process.execPath, 'consumer.ts')).toBe('true true\n');
}, 60_000);

test('the command runs from the package', () => {
  expect(run('node_modules/kilit/dist/kilit.js', '--version')).toBe('kilit 0.1.0\n');
  expect(run('node_modules/kilit/dist/kilit.js', 'guard', 'postgres', 'sql')).toContain(
    'create schema if not exists kilit',
  );
});

test('the command is a plugin of kubectl too, and finds what talks to a cluster inside itself', () => {
  const { bin } = JSON.parse(readFileSync(join(folder, 'node_modules/kilit/package.json'), 'utf8')) as { bin: object };
  expect(bin).toEqual({ kilit: './dist/kilit.js', 'kubectl-kilit': './dist/kilit.js' });
  const alone = mkdtempSync(join(tmpdir(), 'kilit-alone-'));
  try {
    copyFileSync(join(folder, 'node_modules/kilit/dist/kilit.js'), join(alone, 'kubectl-kilit.mjs'));
    const config = join(alone, 'config');
    const cluster = { server: 'https://127.0.0.1:1', 'insecure-skip-tls-verify': true };
    const context = { cluster: 'c', user: 'u' };
    writeFileSync(
      config,
      JSON.stringify({
        clusters: [{ name: 'c', cluster }],
        users: [{ name: 'u', user: { token: 't' } }],
        contexts: [{ name: 'far', context }],
        'current-context': 'far',
      }),
    );
    const ran = spawnSync(process.execPath, ['kubectl-kilit.mjs', 'list', '--kubeconfig', config], {
      cwd: alone,
      encoding: 'utf8',
    });
    expect([ran.status, ran.stderr]).toEqual([
      1,
      expect.stringContaining("[Unreachable] No answer from the API server https://127.0.0.1:1 (context 'far')"),
    ]);
  } finally {
    rmSync(alone, { recursive: true, force: true });
  }
});

test('the guard loads neither client-node nor yaml', () => {
  const seen = run(
    process.execPath,
    '--input-type=module',
    '-e',
    `import { registerHooks } from 'node:module';
     const seen = [];
     registerHooks({ resolve(name, context, next) { seen.push(name); return next(name, context); } });
     await import('kilit/guards/postgres');
     console.log(JSON.stringify(seen));`,
  );
  const names = JSON.parse(seen) as string[];
  expect(names).toContain('kilit/guards/postgres');
  expect(
    names.filter((name) => !name.startsWith('.') && !name.startsWith('node:') && name !== 'kilit/guards/postgres'),
  ).toEqual([]);
});

test('the package has what a program or a person needs, and neither sources nor the image', () => {
  const entries = readdirSync(join(folder, 'node_modules/kilit'), { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).replace(/^.*node_modules\/kilit\//, ''));
  expect(files.filter((name) => !name.startsWith('dist/')).toSorted()).toEqual(FILES.toSorted());
  expect(files).toEqual(
    expect.arrayContaining(['dist/kilit.js', 'dist/sql/40-enter.sql', 'dist/lib/guards/postgres/sql/40-enter.sql']),
  );
  expect(files.filter((name) => /operator|sidecar|\/cli\//.test(name))).toEqual([]);
});
