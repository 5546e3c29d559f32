/** Runs `examples/paused-holder` on a cluster: its manifests, its database, what its programs print, and the pause. */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { SIDECAR_CONTAINER } from '../../src/api/names.ts';
import type { RawPod } from '../../src/core/raw-pod.ts';
import type { Cluster } from '../cluster/index.ts';
import { repositoryRoot } from '../cluster/paths.ts';
import { sleep, waitFor } from '../cluster/progress.ts';
import { kubectlLines } from './kubectl-lines.ts';
import { signalContainers } from './signals.ts';

const EXAMPLE = join(repositoryRoot, 'examples', 'paused-holder');
const PART_OF = 'app.kubernetes.io/part-of=paused-holder';
const PROGRAM = 'app';
/** Two are charged before, so that the viewer sees that it works. */
const FIRST_TRY = 3;
const CUSTOMERS = 6;
const PATIENCE_SECONDS = 60;
const AGAIN_MILLISECONDS = 100;

export type GuardMode = 'on' | 'off';
const DATABASES: Readonly<Record<GuardMode, string>> = { on: 'guarded', off: 'unguarded' };

export interface Refusal {
  readonly token: string;
  readonly mark: string;
  readonly application: string;
}

export interface Billing {
  /** Starts a new database, and waits until it answers. */
  startDatabase(): Promise<void>;
  /** Two Pods, gated by lock `billing`; those of another mode end first. */
  deploy(guard: GuardMode): Promise<void>;
  /** Removes all objects of the example but the lock, and waits until the Pods are gone. */
  remove(): Promise<void>;
  /** As a superuser, in the database of this mode. */
  sql<Row>(guard: GuardMode, statement: string): Promise<readonly Row[]>;
  /** The example's own checker. */
  check(guard: GuardMode): Promise<{ readonly right: boolean; readonly lines: readonly string[] }>;
  /** Follows what the program of a Pod prints, also after a restart. */
  follow(pod: string): BillingLog;
  /**
   * Stops every process of the Pod while it is in the middle of charging a customer; returns that customer's number.
   *
   * Between its line "about to charge" and the commit: what is too late is set going again, and the next one tried.
   */
  pauseInTheMiddle(guard: GuardMode, of: { readonly pod: string; readonly log: BillingLog }): Promise<Pause>;
  /**
   * Sets the program going again, and its sidecar not yet, which would have it stopped within some hundred milliseconds.
   *
   * Which of the two wakes up first is chance; so nothing depends on it.
   */
  wakeProgram(pod: string): Promise<void>;
  wakeSidecar(pod: string): Promise<void>;
}

export interface Pause {
  /** About to be charged. */
  readonly customer: number;
  /** When the pause began, as `Date.now`. */
  readonly at: number;
}

export interface BillingLog extends AsyncDisposable {
  lines(): readonly string[];
  /** Waits for a line. @throws Error that shows the lines there were */
  until(pattern: RegExp): Promise<string>;
}

export function openBilling(cluster: Cluster, namespace: string): Billing {
  const kubectl = (...args: string[]): Promise<string> => cluster.kubectl(['-n', namespace, ...args]);
  const apply = async (objects: readonly object[]): Promise<void> => {
    await cluster.kubectl(['-n', namespace, 'apply', '-f', '-'], {
      input: objects.map((object) => JSON.stringify(object)).join('\n---\n'),
    });
  };
  const signal = async (name: 'SIGSTOP' | 'SIGCONT', pod: string, containers: readonly string[]): Promise<void> => {
    const object = JSON.parse(await kubectl('get', 'pod', pod, '-o', 'json')) as RawPod;
    await signalContainers(cluster, object, { containers, signal: name });
  };
  const inDatabase = (...command: string[]): Promise<string> => kubectl('exec', 'postgres', '--', ...command);
  const sql: Billing['sql'] = async <Row>(guard: GuardMode, statement: string) =>
    (await inDatabase('sql', DATABASES[guard], statement))
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Row);

  return {
    sql,
    async startDatabase() {
      await kubectl('delete', 'pod', 'postgres', '--ignore-not-found');
      await apply(await objectsOf('postgres.yaml'));
      await kubectl('wait', 'pod/postgres', '--for=condition=Ready', `--timeout=${PATIENCE_SECONDS}s`);
    },
    async deploy(guard) {
      const env = { GUARD: guard, PGDATABASE: DATABASES[guard] };
      await apply((await objectsOf('billing.yaml')).map((object) => withEnv(object, env)));
    },
    async remove() {
      await kubectl('delete', 'deployments,pods,services,secrets', '-l', PART_OF);
    },
    async check(guard) {
      const lines = (text: string): readonly string[] => text.trimEnd().split('\n');
      try {
        return { right: true, lines: lines(await inDatabase('check', DATABASES[guard])) };
      } catch (error) {
        // kubectl ends with the checker's code; a checker that found nothing wrong has failed otherwise.
        const stdout = error instanceof Error && 'stdout' in error ? String(error.stdout) : '';
        if (!stdout.includes('WRONG')) throw error;
        return { right: false, lines: lines(stdout) };
      }
    },
    follow: (pod) => followLog(cluster, ['logs', '-f', '--timestamps', '-n', namespace, pod, '-c', PROGRAM]),
    async pauseInTheMiddle(guard, { pod, log }) {
      for (let customer = FIRST_TRY; customer <= CUSTOMERS; customer += 1) {
        await log.until(new RegExp(`about to charge customer ${customer} `));
        const at = Date.now();
        await signal('SIGSTOP', pod, [PROGRAM, SIDECAR_CONTAINER]);
        const committed = await sql(guard, `select from charge where customer = ${customer}`);
        if (committed.length === 0) return { customer, at };
        await signal('SIGCONT', pod, [SIDECAR_CONTAINER, PROGRAM]);
      }
      throw new Error(`Pod ${pod} could not be paused in the middle of a charge: it was always too late.`);
    },
    wakeProgram: (pod) => signal('SIGCONT', pod, [PROGRAM]),
    wakeSidecar: (pod) => signal('SIGCONT', pod, [SIDECAR_CONTAINER]),
  };
}

interface Manifest {
  readonly kind: string;
  readonly spec?: { readonly template?: { readonly spec: { readonly containers: readonly Container[] } } };
}

interface Container {
  readonly env: { readonly name: string; value?: string }[];
}

const objectsOf = async (file: string): Promise<readonly Manifest[]> =>
  parseAllDocuments(await readFile(join(EXAMPLE, file), 'utf8')).map((document) => document.toJS() as Manifest);

/** The same as `kubectl set env`. */
function withEnv(object: Manifest, env: Readonly<Record<string, string>>): Manifest {
  const changed = structuredClone(object);
  for (const container of changed.spec?.template?.spec.containers ?? []) {
    for (const variable of container.env) {
      const value = env[variable.name];
      if (value !== undefined) variable.value = value;
    }
  }
  return changed;
}

function followLog(cluster: Cluster, args: readonly string[]): BillingLog {
  const stop = new AbortController();
  /** By time and text: a line that is read again counts once. */
  const seen = new Set<string>();
  const lines = (): readonly string[] => [...seen].map((line) => line.slice(line.indexOf(' ') + 1));
  const followed = (async () => {
    while (!stop.signal.aborted) {
      await kubectlLines(cluster, args, { signal: stop.signal, onLine: (line) => seen.add(line) });
      if (!stop.signal.aborted) await sleep(AGAIN_MILLISECONDS);
    }
  })();
  return {
    lines,
    async until(pattern) {
      const find = (): string | undefined => lines().find((line) => pattern.test(line));
      await waitFor(() => find() !== undefined, {
        what: `a line ${pattern} of the billing program`,
        timeoutSeconds: PATIENCE_SECONDS,
        everyMilliseconds: 20,
        explain: () => lines().join('\n'),
      });
      return find() ?? '';
    },
    async [Symbol.asyncDispose]() {
      stop.abort();
      await followed;
    },
  };
}
