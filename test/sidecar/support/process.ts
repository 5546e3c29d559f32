import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { FakeApi } from './fake-api.ts';

export const IDENTITY = 'billing-0_2b0c5a1e-uid';
const MAIN = resolve(import.meta.dirname, '../../../src/sidecar/main.ts');

export interface Answer {
  readonly status: number;
  readonly body: string;
}

/** The real program in a folder of its own. */
export interface SidecarProcess extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly dir: string;
  readonly port: number;
  readonly exited: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
  file(name: string): string | undefined;
  log(): string;
  probe(path: string, timeoutMs?: number): Promise<Answer>;
  ask(method: string, path: string, body?: string): Promise<Answer>;
}

export interface SidecarOptions {
  readonly api: Pick<FakeApi, 'port' | 'ca'>;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly epoch?: boolean;
  readonly files?: Readonly<Record<string, string>>;
  readonly dir?: string;
  readonly nodeFlags?: readonly string[];
  readonly main?: string;
}

export async function startSidecar(options: SidecarOptions): Promise<SidecarProcess> {
  const dir = options.dir ?? mkdtempSync(join(tmpdir(), 'kilit-'));
  const apiDir = mkdtempSync(join(tmpdir(), 'kilit-api-'));
  writeFileSync(join(apiDir, 'ca.crt'), options.api.ca);
  writeFileSync(join(apiDir, 'token'), 'secret\n');
  if (options.epoch ?? true) writeFileSync(join(dir, 'epoch'), 'e\n');
  for (const [name, text] of Object.entries(options.files ?? {})) writeFileSync(join(dir, name), text);
  const port = await freePort();
  const child = spawn(process.execPath, [...(options.nodeFlags ?? []), options.main ?? MAIN, ...(options.args ?? [])], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      KILIT_LOCK: 'billing',
      KILIT_NAMESPACE: 'shop',
      KILIT_POD_NAME: 'billing-0',
      KILIT_POD_UID: '2b0c5a1e-uid',
      KILIT_MODE: 'gate',
      KILIT_PORT: String(port),
      KUBERNETES_SERVICE_HOST: '127.0.0.1',
      KUBERNETES_SERVICE_PORT: String(options.api.port),
      KILIT_DIR: dir,
      KILIT_API_DIR: apiDir,
      ...options.env,
    },
  });
  let output = '';
  child.stdout.on('data', (chunk) => (output += String(chunk)));
  child.stderr.on('data', (chunk) => (output += String(chunk)));
  const exited = once(child, 'close').then(([code, signal]) => ({ code, signal }));
  return {
    child,
    dir,
    port,
    exited,
    file: (name) => (existsSync(join(dir, name)) ? readFileSync(join(dir, name), 'utf8') : undefined),
    log: () => output,
    probe: (path, timeoutMs = 10_000) => fetchText({ port, host: '127.0.0.1', path, timeoutMs }),
    ask: (method, path, body) => fetchText({ socketPath: join(dir, 'sock'), method, path, timeoutMs: 5000 }, body),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) {
        child.kill('SIGCONT');
        child.kill('SIGKILL');
        await exited;
      }
      rmSync(dir, { recursive: true, force: true });
      rmSync(apiDir, { recursive: true, force: true });
    },
  };
}

export function fetchText(
  {
    timeoutMs,
    ...options
  }: {
    timeoutMs: number;
    path: string;
    method?: string;
    host?: string;
    port?: number;
    socketPath?: string;
    headers?: Record<string, string>;
  },
  body?: string,
): Promise<Answer> {
  return new Promise((fulfil, reject) => {
    const sent = request({ ...options, agent: false }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk)));
      response.on('end', () => fulfil({ status: response.statusCode ?? 0, body: text }));
      response.on('error', reject);
    });
    sent.on('error', reject);
    sent.setTimeout(timeoutMs, () => sent.destroy(new Error(`No answer from ${options.path} within ${timeoutMs} ms`)));
    sent.end(body);
  });
}

/** Waits until `check` holds; fails with `what` after `timeoutMs`. */
export async function eventually(
  what: string,
  check: () => boolean | Promise<boolean>,
  timeoutMs = 8000,
): Promise<void> {
  const until = performance.now() + timeoutMs;
  while (!(await holds(check))) {
    if (performance.now() > until) throw new Error(`Not within ${timeoutMs} ms: ${what}`);
    await new Promise((wake) => setTimeout(wake, 20));
  }
}

/** A check that throws does not hold yet. */
async function holds(check: () => boolean | Promise<boolean>): Promise<boolean> {
  try {
    return await check();
  } catch {
    return false;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
