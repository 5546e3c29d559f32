import { spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

export interface RunOptions {
  readonly input?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly cwd?: string;
  /** @default 600 */
  readonly timeoutSeconds?: number;
  /** Called with every line of standard error, for progress. */
  readonly onErrorLine?: (line: string) => void;
}

export interface RunResult {
  readonly stdout: string;
  readonly stderr: string;
}

/** A command ended with another status than 0; the message holds the command and the end of its standard error. */
export class CommandError extends Error {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;

  constructor(command: string, outcome: string, result: RunResult, exitCode: number | null) {
    const said = (result.stderr.trim() || result.stdout.trim()).slice(-4000);
    super(`${command} ${outcome}: ${said || '(no output)'}`);
    this.name = 'CommandError';
    this.exitCode = exitCode;
    this.stdout = result.stdout;
    this.stderr = result.stderr;
  }
}

const shorten = (text: string): string => (text.length > 200 ? `${text.slice(0, 200)}…` : text);

/** Runs a command to its end; never through a shell. Throws CommandError when it fails or takes too long. */
export function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<RunResult> {
  const shown = shorten([command.split('/').at(-1), ...args].join(' '));
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      ...(options.cwd === undefined ? {} : { cwd: options.cwd }),
      env: { ...process.env, ...options.env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    const timeoutSeconds = options.timeoutSeconds ?? 600;
    let timedOut = false;
    const timer = setTimeout(() => {
      timedOut = true;
      child.kill('SIGKILL');
    }, timeoutSeconds * 1000);
    let stdout = '';
    let stderr = '';
    let line = '';
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      stdout += chunk;
    });
    child.stderr.setEncoding('utf8').on('data', (chunk: string) => {
      stderr += chunk;
      const lines = (line + chunk).split('\n');
      line = lines.pop() ?? '';
      for (const each of lines) options.onErrorLine?.(each);
    });
    child.on('error', (error: NodeJS.ErrnoException) => {
      clearTimeout(timer);
      reject(error.code === 'ENOENT' ? new Error(missingCommand(command)) : error);
    });
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      if (code === 0) return resolve({ stdout, stderr });
      const outcome = timedOut ? `took longer than ${timeoutSeconds} s` : `failed (${signal ?? `exit ${code}`})`;
      return reject(new CommandError(shown, outcome, { stdout, stderr }, code));
    });
    child.stdin.on('error', () => {}); // The command may end without reading its input.
    child.stdin.end(options.input ?? '');
  });
}

export async function succeeds(command: string, args: readonly string[], options: RunOptions = {}): Promise<boolean> {
  return run(command, args, options).then(
    () => true,
    () => false,
  );
}

export function missingCommand(command: string): string {
  return `The command '${command}' is missing. Install it, or put it on the PATH.`;
}

/** Where a command is, or undefined. `sbin` folders are searched too: a user's PATH often lacks them. */
export function findCommand(command: string): string | undefined {
  if (command.includes('/')) return isExecutable(command) ? command : undefined;
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/local/sbin', '/usr/sbin', '/sbin'];
  const paths = folders.filter((folder) => folder !== '').map((folder) => join(folder, command));
  return paths.find(isExecutable);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
