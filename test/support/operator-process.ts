/** Runs the operator as a process of the test, with the identity that the policies ask for: its account, bound to a Pod. */
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build } from 'esbuild';
import { parse, stringify } from 'yaml';
import { OPERATOR_LEASE } from '../../src/api/names.ts';
import { TEST_IMAGE } from '../../tools/cluster/index.ts';
import { OPERATOR_NAMESPACE, RELEASE } from './cluster.ts';
import type { Kube } from './kube.ts';
import { waitFor } from './wait.ts';

const DEPLOYMENT = `/apis/apps/v1/namespaces/${OPERATOR_NAMESPACE}/deployments/${RELEASE}`;
const PODS = `/api/v1/namespaces/${OPERATOR_NAMESPACE}/pods`;
const STAND_IN = 'operator-under-test';
const PORT = 18_080;

export type Crash = 'before' | 'after' | 'never';

export interface OperatorProcess {
  /** What it wrote, as `VERB path`, in order. */
  readonly wrote: readonly string[];
  /** Resolves with the signal or the exit code that ended it. */
  readonly ended: Promise<NodeJS.Signals | number>;
  kill(): void;
}

/** Scales the operator of the cluster; waits until its Pods are there or gone. */
export async function scaleOperator(kube: Kube, replicas: number): Promise<void> {
  await kube.must('PATCH', DEPLOYMENT, { body: { spec: { replicas } } });
  await waitFor(`${replicas} operators`, async () => {
    const list = await kube.must('GET', `${PODS}?labelSelector=app.kubernetes.io%2Fcomponent%3Doperator`);
    const pods = list.items as { status?: { conditions?: { type: string; status: string }[] } }[];
    const ready = pods.filter((pod) => pod.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True'));
    return pods.length === replicas && ready.length === replicas;
  });
}

/** Starts operators in turn, while the cluster's own are scaled to zero. Disposing of it brings those back. */
export class OperatorLab implements AsyncDisposable {
  readonly #kube: Kube;
  readonly #dir: string;
  readonly #uid: string;
  readonly #running = new Set<OperatorProcess>();

  private constructor(kube: Kube, dir: string, uid: string) {
    this.#kube = kube;
    this.#dir = dir;
    this.#uid = uid;
  }

  static async open(kube: Kube): Promise<OperatorLab> {
    await scaleOperator(kube, 0);
    const dir = mkdtempSync(join(tmpdir(), 'kilit-operator-'));
    const pod = await kube.must('POST', PODS, {
      body: {
        metadata: { name: STAND_IN },
        spec: {
          serviceAccountName: RELEASE,
          terminationGracePeriodSeconds: 0,
          containers: [{ name: 'sleep', image: TEST_IMAGE, imagePullPolicy: 'Never', command: ['sleep', '100000'] }],
        },
      },
    });
    const uid = pod.metadata?.uid ?? '';
    const answer = await kube.must(
      'POST',
      `/api/v1/namespaces/${OPERATOR_NAMESPACE}/serviceaccounts/${RELEASE}/token`,
      {
        body: { spec: { boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name: STAND_IN, uid } } },
      },
    );
    const { token } = answer.status as { token: string };
    const config = parse(readFileSync(kube.kubeconfig, 'utf8')) as { users: { user: object }[] };
    for (const entry of config.users) entry.user = { token };
    writeFileSync(join(dir, 'kubeconfig'), stringify(config));
    await build({
      entryPoints: [join(import.meta.dirname, 'crashing-operator.ts')],
      outfile: join(dir, 'operator.mjs'),
      bundle: true,
      platform: 'node',
      format: 'esm',
      banner: { js: "import { createRequire as cr } from 'node:module';const require = cr(import.meta.url);" },
    });
    return new OperatorLab(kube, dir, uid);
  }

  /** Starts an operator that need not wait for the lease of the one before it. */
  async start(crash: Crash): Promise<OperatorProcess> {
    await this.#kube.ask(
      'DELETE',
      `/apis/coordination.k8s.io/v1/namespaces/${OPERATOR_NAMESPACE}/leases/${OPERATOR_LEASE}`,
    );
    const child = spawn(process.execPath, [join(this.#dir, 'operator.mjs')], {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: {
        PATH: process.env.PATH,
        CRASH: crash,
        KILIT_KUBECONFIG: join(this.#dir, 'kubeconfig'),
        KILIT_HTTP_PORT: String(PORT),
        POD_NAME: STAND_IN,
        POD_NAMESPACE: OPERATOR_NAMESPACE,
        POD_UID: this.#uid,
        LOG_LEVEL: 'error',
      },
    });
    const wrote: string[] = [];
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      for (const line of text.split('\n')) if (line.startsWith('wrote ')) wrote.push(line.slice('wrote '.length));
    });
    const operator: OperatorProcess = {
      wrote,
      ended: new Promise((resolve) => {
        child.on('close', (code, signal) => resolve(signal ?? code ?? -1));
      }),
      kill: () => child.kill('SIGKILL'),
    };
    this.#running.add(operator);
    void operator.ended.then(() => this.#running.delete(operator));
    return operator;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const operator of this.#running) operator.kill();
    rmSync(this.#dir, { recursive: true, force: true });
    await this.#kube.ask('DELETE', `${PODS}/${STAND_IN}`);
    await scaleOperator(this.#kube, 2);
  }
}
