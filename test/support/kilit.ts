/** The command line as a user runs it: a process of its own, so that the test can play the API server meanwhile. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repositoryRoot } from '../../tools/cluster/paths.ts';

const MAIN = join(repositoryRoot, 'src/cli/main.ts');

export interface Ran {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Without a terminal. `env` stands in for the user's: nothing of this process's kubeconfig is seen. */
export function kilit(words: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Ran> {
  const { KUBECONFIG: _, ...own } = process.env;
  const child = spawn(process.execPath, [MAIN, ...words], {
    env: { ...own, HOME: '/nonexistent', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.on('data', (chunk) => (stdout += String(chunk)));
  child.stderr.on('data', (chunk) => (stderr += String(chunk)));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, stdout, stderr }));
  });
}

export interface KubeconfigParts {
  readonly server: string;
  /** PEM. */
  readonly ca: string;
  readonly token: string;
  readonly namespace?: string;
}

/** A kubeconfig in a folder of its own, which disposing of it removes. */
export function writeKubeconfig({
  server,
  ca,
  token,
  namespace,
}: KubeconfigParts): Disposable & { readonly path: string } {
  const dir = mkdtempSync(join(tmpdir(), 'kilit-kubeconfig-'));
  const path = join(dir, 'config');
  const context = { cluster: 'c', user: 'u', ...(namespace !== undefined && { namespace }) };
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ name: 'c', cluster: { server, 'certificate-authority-data': Buffer.from(ca).toString('base64') } }],
    users: [{ name: 'u', user: { token } }],
    contexts: [{ name: 'fake', context }],
    'current-context': 'fake',
  };
  writeFileSync(path, JSON.stringify(config));
  return { path, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}
