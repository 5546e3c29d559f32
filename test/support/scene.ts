/** A namespace with locks and gated Pods of a small program, on the real cluster. */
import type { DistributedLock } from '../../src/api/generated/distributedlock.ts';
import { leaseName } from '../../src/api/names.ts';
import type { RawLease } from '../../src/core/lease.ts';
import type { RawPod } from '../../src/core/raw-pod.ts';
import { TEST_IMAGE } from '../../tools/cluster/index.ts';
import type { Kube } from './kube.ts';
import { waitFor } from './wait.ts';

/** What the program writes when it starts: everything by which it can learn its token. */
export interface Started {
  readonly env: string;
  readonly file: string;
  readonly display: string;
  readonly at: number;
}

/** Prints its token at its start, as one line; then lives until SIGTERM, which it obeys at once. */
const PROGRAM = `
const fs = require('fs');
const read = (p) => { try { return fs.readFileSync(p, 'utf8').trim() } catch { return '' } };
process.on('SIGTERM', () => process.exit(Number(process.env.EXIT_CODE ?? 0)));
console.log(JSON.stringify({ started: { env: process.env.FENCING_TOKEN ?? '', file: read('/run/kilit/token'), display: read('/etc/kilit/token'), at: Date.now() } }));
let shown = '';
setInterval(() => { const d = read('/etc/kilit/token'); if (d !== shown) { shown = d; console.log(JSON.stringify({ display: d, at: Date.now() })); } }, 50);
`;

export interface PodOptions {
  readonly lock: string;
  readonly name: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: object;
  readonly container?: object;
  readonly program?: string;
}

export const gatedPod = (options: PodOptions) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: options.name,
    labels: { 'kilit.dev/lock': options.lock, ...options.labels },
    ...(options.annotations !== undefined && { annotations: options.annotations }),
  },
  spec: {
    terminationGracePeriodSeconds: 5,
    restartPolicy: 'Always',
    containers: [
      {
        name: 'app',
        image: TEST_IMAGE,
        imagePullPolicy: 'Never',
        command: ['node', '-e', options.program ?? PROGRAM],
        ...options.container,
      },
    ],
    ...options.spec,
  },
});

export class Scene implements AsyncDisposable {
  readonly namespace: string;
  readonly kube: Kube;
  readonly #dispose: () => PromiseLike<void>;

  constructor(kube: Kube, namespace: string, dispose: () => PromiseLike<void>) {
    this.kube = kube;
    this.namespace = namespace;
    this.#dispose = dispose;
  }

  static async open(kube: Kube, prefix: string): Promise<Scene> {
    const namespace = await kube.namespace(prefix);
    return new Scene(kube, namespace.name, () => namespace[Symbol.asyncDispose]());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#dispose();
  }

  lockPath(name = ''): string {
    return `/apis/kilit.dev/v1alpha1/namespaces/${this.namespace}/distributedlocks/${name}`.replace(/\/$/, '');
  }

  podPath(name = ''): string {
    return `/api/v1/namespaces/${this.namespace}/pods/${name}`.replace(/\/$/, '');
  }

  leasePath(lock: string): string {
    return `/apis/coordination.k8s.io/v1/namespaces/${this.namespace}/leases/${leaseName(lock)}`;
  }

  /** Makes a lock of a short lease, so that tests wait less, and waits until it is Ready. */
  async lock(
    name: string,
    spec: object = { leaseDurationSeconds: 5, takeoverDelaySeconds: 0 },
  ): Promise<DistributedLock> {
    const body = { apiVersion: 'kilit.dev/v1alpha1', kind: 'DistributedLock', metadata: { name }, spec };
    await this.kube.must('POST', this.lockPath(), { body });
    return waitFor(`lock ${name} to be Ready`, async () => {
      const lock = await this.readLock(name);
      return condition(lock, 'Ready')?.status === 'True' ? lock : undefined;
    });
  }

  async pod(options: PodOptions): Promise<RawPod> {
    return (await this.kube.must('POST', this.podPath(), { body: gatedPod(options) })) as unknown as RawPod;
  }

  async readLock(name: string): Promise<DistributedLock> {
    return (await this.kube.must('GET', this.lockPath(name))) as unknown as DistributedLock;
  }

  async readLease(lock: string): Promise<RawLease> {
    return (await this.kube.must('GET', this.leasePath(lock))) as unknown as RawLease;
  }

  async readPod(name: string): Promise<RawPod> {
    return (await this.kube.must('GET', this.podPath(name))) as unknown as RawPod;
  }

  /** Deletes a Pod; `seconds` overrides its grace period, 0 forces. */
  async deletePod(name: string, seconds?: number): Promise<void> {
    const query = seconds === undefined ? '' : `?gracePeriodSeconds=${seconds}`;
    await this.kube.must('DELETE', this.podPath(name) + query);
  }

  /** All starts of the program in this Pod's present container, oldest first. */
  async starts(pod: string): Promise<readonly Started[]> {
    const lines = await this.logs(pod);
    return lines.flatMap((line) => ('started' in line ? [line.started as Started] : []));
  }

  async logs(pod: string, container = 'app'): Promise<readonly Readonly<Record<string, unknown>>[]> {
    const answer = await this.kube.ask('GET', `${this.podPath(pod)}/log?container=${container}`);
    if (answer.status !== 200) return [];
    // One line alone is JSON, so the answer was parsed already.
    const text = answer.body.message ?? JSON.stringify(answer.body);
    return text.split('\n').flatMap((line) => {
      try {
        return [JSON.parse(line) as Record<string, unknown>];
      } catch {
        return [];
      }
    });
  }

  /** Waits until this Pod's program has started, and returns its newest start. */
  started(pod: string, seconds = 60): Promise<Started> {
    return waitFor(`the program of Pod ${pod} to start`, async () => (await this.starts(pod)).at(-1), { seconds });
  }

  /** The Pod that the Lease names, and its token. */
  async holder(lock: string): Promise<{ readonly pod: string; readonly token: string } | undefined> {
    const lease = await this.readLease(lock);
    const identity = lease.spec?.holderIdentity ?? '';
    if (identity === '') return undefined;
    return {
      pod: identity.slice(0, identity.lastIndexOf('_')),
      token: lease.metadata.annotations?.['kilit.dev/fencing-token'] ?? '',
    };
  }

  holds(lock: string, pod: string, seconds = 60): Promise<string> {
    return waitFor(
      `Pod ${pod} to hold lock ${lock}`,
      async () => {
        const holder = await this.holder(lock);
        return holder?.pod === pod ? holder.token : undefined;
      },
      { seconds },
    );
  }
}

export function condition(lock: DistributedLock, type: string) {
  return lock.status?.conditions?.find((c) => c.type === type);
}
