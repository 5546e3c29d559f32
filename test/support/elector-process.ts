/**
 * Leader elections of Go's libraries as processes of the test: builds `test/interop` and starts its programs.
 *
 * The programs are unmodified users of client-go and controller-runtime; they say what happens as JSON lines.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findCommand, run } from '../../tools/cluster/exec.ts';
import { step } from '../../tools/cluster/progress.ts';
import { waitFor } from './wait.ts';

const SOURCE = join(import.meta.dirname, '../interop');
const GO_ENV = { CGO_ENABLED: '0', GOFLAGS: '-trimpath', GOWORK: 'off' };
/** Compiling Kubernetes' client for the first time takes 4 minutes on 2 cores; later builds take seconds. */
const BUILD_TIMEOUT_SECONDS = 1800;

export const LIBRARIES = ['client-go', 'controller-runtime'] as const;
export type Library = (typeof LIBRARIES)[number];

/** Why they cannot be built on this machine; undefined when they can. */
export const whyNoGo = (): string | undefined =>
  findCommand('go') === undefined
    ? "the command 'go' is missing; install Go 1.26 or newer and put it on the PATH"
    : undefined;

export interface ElectorLine {
  readonly event: 'leading' | 'token' | 'no token' | 'stopped' | 'ended' | 'answer';
  readonly identity: string;
  readonly token?: string;
  readonly error?: string;
  readonly question?: Question;
  /** When the test read the line, in milliseconds of its monotonic clock. */
  readonly at: number;
}

/** `token`: what the helper says. `read`: a GET and the helper's rule. `naive`: a GET and no rule. */
export type Question = 'token' | 'read' | 'naive';

/** The folder of the programs, one for each library; and the helper's own tests have passed. */
export async function buildElectors(
  onProgress: (line: string) => void,
): Promise<Disposable & { readonly dir: string }> {
  const dir = mkdtempSync(join(tmpdir(), 'kilit-electors-'));
  const go = (name: string, args: readonly string[]) =>
    step(onProgress, name, (detail) => {
      let packages = 0;
      const onErrorLine = (line: string): void => {
        if (!line.startsWith('go: ')) packages += 1;
        detail(packages === 0 ? line : `${packages} packages compiled, now ${line}`);
      };
      return run('go', args, { cwd: SOURCE, env: GO_ENV, timeoutSeconds: BUILD_TIMEOUT_SECONDS, onErrorLine });
    });
  const programs = LIBRARIES.map((library) => `./${library}`);
  await go('build the leader elections of client-go and controller-runtime', [
    'build',
    '-v',
    '-o',
    `${dir}/`,
    ...programs,
  ]);
  await go("test the Go helper 'fencedtoken'", ['test', '-vet=off', './fencedtoken']);
  return { dir, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) };
}

export interface ElectorOptions {
  readonly program: string;
  readonly kubeconfig: string;
  readonly namespace: string;
  readonly lease: string;
  readonly identity: string;
}

/** A replica that stands for election. */
export class Elector implements Disposable {
  readonly identity: string;
  readonly lines: ElectorLine[] = [];
  readonly #child: ChildProcess;

  constructor({ program, kubeconfig, namespace, lease, identity }: ElectorOptions) {
    this.identity = identity;
    this.#child = spawn(program, [], {
      stdio: ['pipe', 'pipe', 'ignore'], // klog tells each failed try; what counts is said on the standard output
      env: { PATH: process.env.PATH, KUBECONFIG: kubeconfig, NAMESPACE: namespace, LEASE: lease, IDENTITY: identity },
    });
    this.#child.stdin?.on('error', () => {}); // A killed process reads no more.
    let rest = '';
    this.#child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      const lines = (rest + text).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.lines.push({ ...(JSON.parse(line) as ElectorLine), at: performance.now() });
    });
  }

  /** Waits for the token that it takes when it leads. */
  token(seconds = 30): Promise<string> {
    return waitFor(`${this.identity} to lead with a token`, () => this.#last('token')?.token, { seconds, everyMs: 20 });
  }

  get isLeading(): boolean {
    return this.lines.some(({ event }) => event === 'leading');
  }

  /** How long after it began to lead it had its token, in milliseconds. */
  get tokenAfterMs(): number {
    return (this.#last('token')?.at ?? Number.NaN) - (this.#last('leading')?.at ?? Number.NaN);
  }

  /** Puts questions; a paused process answers them as the first thing when it goes on. */
  ask(...questions: readonly Question[]): void {
    this.#child.stdin?.write(questions.map((question) => `${question}\n`).join(''));
  }

  /** The answers so far. */
  answers(question: Question): readonly ElectorLine[] {
    return this.lines.filter((line) => line.event === 'answer' && line.question === question);
  }

  /** Asks one question and waits for its answer. */
  async answer(question: Question): Promise<ElectorLine> {
    const before = this.answers(question).length;
    this.ask(question);
    return waitFor(`${this.identity} to answer '${question}'`, () => this.answers(question)[before], { everyMs: 20 });
  }

  ended(): Promise<ElectorLine> {
    return waitFor(`the election of ${this.identity} to end`, () => this.#last('ended'), { everyMs: 20 });
  }

  /** SIGSTOP, SIGCONT, SIGKILL; SIGTERM ends the election and releases the Lease. */
  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Stops it, and resolves when all its threads stand: what it is asked from then on it reads only after SIGCONT. */
  async pause(): Promise<void> {
    this.#child.kill('SIGSTOP');
    await waitFor(
      'the process to stand',
      async () => {
        const stat = await readFile(`/proc/${this.#child.pid}/stat`, 'utf8');
        return stat.slice(stat.lastIndexOf(')') + 2).startsWith('T');
      },
      { everyMs: 5 },
    );
  }

  [Symbol.dispose](): void {
    this.#child.kill('SIGKILL');
  }

  #last(event: ElectorLine['event']): ElectorLine | undefined {
    return this.lines.findLast((line) => line.event === event);
  }
}
