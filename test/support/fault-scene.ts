/** A scene whose programs write a common history, and whose containers can be disturbed behind the kubelet's back. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RawPod } from '../../src/core/raw-pod.ts';
import type { Cluster, ClusterNode } from '../../tools/cluster/index.ts';
import { type Life, type Line, livesOf, parseHistory } from './history.ts';
import type { Kube } from './kube.ts';
import { gatedPod, Scene } from './scene.ts';
import { waitFor } from './wait.ts';
import { type WritingPodOptions, writingPod } from './writing-pod.ts';

export class FaultScene extends Scene {
  readonly #cluster: Cluster;
  readonly #dir: string;
  readonly #uids = new Map<string, string>();

  private constructor(
    kube: Kube,
    namespace: string,
    own: { cluster: Cluster; dir: string; end: () => PromiseLike<void> },
  ) {
    super(kube, namespace, own.end);
    this.#cluster = own.cluster;
    this.#dir = own.dir;
  }

  static async openFaults(kube: Kube, cluster: Cluster, prefix: string): Promise<FaultScene> {
    const namespace = await kube.namespace(prefix);
    const dir = await mkdtemp(join(tmpdir(), `kilit-${prefix}-`));
    const end = async (): Promise<void> => {
      await kube.must('DELETE', `/apis/apps/v1/namespaces/${namespace.name}/deployments`);
      // While one lives, containerd makes the folder again.
      await kube.must('DELETE', `/api/v1/namespaces/${namespace.name}/pods?gracePeriodSeconds=1`);
      await waitFor(`the end of all Pods of namespace ${namespace.name}`, async () => {
        const { items } = await kube.must('GET', `/api/v1/namespaces/${namespace.name}/pods`);
        return (items as unknown[]).length === 0;
      });
      await namespace[Symbol.asyncDispose]();
      await rm(dir, { recursive: true, force: true });
    };
    return new FaultScene(kube, namespace.name, { cluster, dir, end });
  }

  override async [Symbol.asyncDispose](): Promise<void> {
    await this.calm();
    await super[Symbol.asyncDispose]();
  }

  get node(): ClusterNode {
    const [node] = this.#cluster.nodes;
    if (node === undefined) throw new Error(`Cluster ${this.#cluster.name} has no node`);
    return node;
  }

  /** Ends the faults that this scene may have left: a stopped kubelet, frozen processes. */
  async calm(): Promise<void> {
    await this.node.startKubelet();
    for (const pod of this.#uids.keys()) await this.signalAll(pod, 'SIGCONT');
  }

  /** Makes a gated Pod whose program writes into the lock's history. */
  async run(options: WritingPodOptions): Promise<RawPod> {
    const made = await this.pod(writingPod(options, this.#dir));
    this.#uids.set(options.name, made.metadata.uid);
    return made;
  }

  /** Makes a Deployment, by default of one replica and with the default strategy, whose programs write into the history. */
  async deploy({ replicas = 1, ...options }: WritingPodOptions & { readonly replicas?: number }): Promise<void> {
    const { metadata, spec } = gatedPod(writingPod(options, this.#dir));
    const app = { app: options.name };
    const template = { metadata: { ...metadata, name: undefined, labels: { ...metadata.labels, ...app } }, spec };
    await this.kube.must('POST', `/apis/apps/v1/namespaces/${this.namespace}/deployments`, {
      body: { metadata: { name: options.name }, spec: { replicas, selector: { matchLabels: app }, template } },
    });
  }

  /** kubectl in this scene's namespace. */
  kubectl(...args: readonly string[]): Promise<string> {
    return this.#cluster.kubectl(['--namespace', this.namespace, ...args]);
  }

  /** Waits until a program that is none of `known` has started, and returns its life. */
  nextLife(lock: string, known: readonly Life[], seconds = 90): Promise<Life> {
    const old = new Set(known.map(({ life }) => life));
    return waitFor(
      `a new program under lock ${lock}`,
      async () => (await this.lives(lock)).find(({ life }) => !old.has(life)),
      { seconds, everyMs: 50 },
    );
  }

  async history(lock: string): Promise<readonly Line[]> {
    const text = await readFile(join(this.#dir, lock), 'utf8').catch(() => '');
    // A line that is being written has no end yet.
    return parseHistory(text.slice(0, text.lastIndexOf('\n') + 1));
  }

  async lives(lock: string, pod?: string): Promise<readonly Life[]> {
    return livesOf(await this.history(lock)).filter((life) => pod === undefined || life.pod === pod);
  }

  /** Waits until the Pod's program has started so many times, and returns the newest life. */
  runs(lock: string, pod: string, { times = 1, seconds = 90 } = {}): Promise<Life> {
    return waitFor(
      `start ${times} of the program of Pod ${pod}`,
      async () => {
        const lives = await this.lives(lock, pod);
        return lives.length >= times && lives.at(-1);
      },
      { seconds, everyMs: 50 },
    );
  }

  /**
   * Makes a holder, whose program runs, and then waiters whose sidecars run.
   *
   * Each has its place before the next is made, so that the order is certain.
   */
  async holderAndWaiters(
    lock: string,
    names: readonly string[],
    { lockSpec, ...options }: Partial<WritingPodOptions> & { readonly lockSpec?: object } = {},
  ): Promise<Life> {
    await this.lock(lock, lockSpec);
    const [holder = '', ...waiters] = names;
    await this.run({ lock, name: holder, ...options });
    const life = await this.runs(lock, holder);
    for (const name of waiters) {
      await this.run({ lock, name });
      await waitFor(
        `Pod ${name} to have its place`,
        async () => (await this.readPod(name)).metadata.annotations?.['kilit.dev/queued-at'],
      );
    }
    await this.waits(lock, waiters);
    return life;
  }

  /** Waits until the lock's queue is exactly this, and all of it could be granted the lock. */
  async waits(lock: string, names: readonly string[], seconds = 90): Promise<void> {
    await waitFor(
      `the queue of lock ${lock} to be [${names.join(', ')}], all ready`,
      async () => {
        const queue = (await this.readLock(lock)).status?.queue ?? [];
        if (queue.map(({ name }) => name).join() !== names.join()) throw new Error(JSON.stringify(queue));
        return queue.every(({ reason }) => reason === 'Waiting') || undefined;
      },
      { seconds },
    );
  }

  uid(pod: string): string {
    const uid = this.#uids.get(pod);
    if (uid === undefined) throw new Error(`This scene has not made Pod ${pod}`);
    return uid;
  }

  async isAlive(pod: string, container: string): Promise<boolean> {
    return ((await this.node.pidsOfPod(this.uid(pod))).get(container) ?? []).length > 0;
  }

  /** Signals a container's first process; returns when it has ended, unless the signal is one that pauses. */
  async kill(pod: string, container: string, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const pid = (await this.node.pidsOfPod(this.uid(pod))).get(container)?.[0];
    await this.node.killContainer(this.uid(pod), container, signal);
    if (signal === 'SIGSTOP' || signal === 'SIGCONT') return;
    await waitFor(
      `container ${container} of Pod ${pod} to end`,
      async () => {
        const now = (await this.node.pidsOfPod(this.uid(pod))).get(container)?.[0];
        return now !== pid;
      },
      { everyMs: 10 },
    );
  }

  /**
   * Makes containerd forget a container that has just ended, so that the kubelet may never learn of its end.
   *
   * A kubelet that runs may be faster, and bring up the next one: then there is nothing to forget, which is no error.
   */
  async forget(pod: string, container: string): Promise<void> {
    await waitFor(
      `containerd to forget container ${container} of Pod ${pod}`,
      async () => {
        try {
          await this.node.removeContainerRecord(this.uid(pod), container);
        } catch (err) {
          if (await this.isAlive(pod, container)) return true;
          // containerd hears of the end a little later than the kernel.
          if (!String(err).includes('has no container')) throw err;
        }
        return true;
      },
      { everyMs: 10 },
    );
  }

  /** Signals every process of every container of the Pod. */
  async signalAll(pod: string, signal: NodeJS.Signals): Promise<void> {
    for (const pids of (await this.node.pidsOfPod(this.uid(pod))).values()) {
      for (const pid of pids) {
        try {
          process.kill(pid, signal);
        } catch {
          // It ended meanwhile.
        }
      }
    }
  }
}

/** Shows a measured time; tests assert generous bounds only. */
export function figure(what: string, milliseconds: number): void {
  console.log(`FIGURE ${what}: ${(milliseconds / 1000).toFixed(2)} s`);
}
