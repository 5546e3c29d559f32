import { RESET_CONTAINER, SIDECAR_CONTAINER, TOKEN_ANNOTATION } from '../../../src/api/names.ts';
import { sameJson } from '../../../src/core/json.ts';
import type { RawPod } from '../../../src/core/raw-pod.ts';
import type { Obj, Who } from '../api/objects.ts';
import { carryOut } from '../api/routes.ts';
import type { Store } from '../api/store.ts';
import type { History } from './history.ts';
import { type Machine, Proc } from './machine.ts';
import { type CallProbe, Link, type Weather } from './network.ts';
import { type Container, gatedNames, type MadeUp, PodOnNode, type PodPlan } from './pod-on-node.ts';
import { podStatus } from './pod-status.ts';
import { Program, type ProgramBehaviour } from './program.ts';
import type { Random } from './random.ts';
import { Reflector } from './reflector.ts';
import { startReset, startSidecar } from './sidecar.ts';

/** What happens on nodes that a check wants to know. */
export interface NodeWatcher {
  /** A program container is created: its environment is resolved now, with this token. */
  programCreated(pod: PodOnNode, token: bigint | undefined): void;
  sidecarEnded(pod: PodOnNode, code: number, explanation: string): void;
  stateLost(pod: PodOnNode): void;
  note(actor: string, text: () => string): void;
}

export interface KubeletDeps {
  readonly machine: Machine;
  readonly store: Store;
  readonly random: Random;
  readonly everywhere: Weather;
  readonly planOf: (uid: string) => PodPlan | undefined;
  readonly historyOf: (lock: string) => History;
  readonly watcher: NodeWatcher;
  readonly probe: CallProbe | undefined;
  readonly staleLists: boolean;
  /** From here on no program ends by itself. */
  readonly calmFromMs: number;
}

/** Least time that a container has between SIGTERM and SIGKILL. */
const LEAST_GRACE_MS = 2_000;
const REQUEST_TIMEOUT_MS = 10_000;
const CRASH_BACKOFF_MS = 10_000;
const RECONCILE_MS = 10_000;

/**
 * A node with its kubelet: one worker for each Pod, which does one thing after another.
 *
 * Containers live on their own; a kubelet that is restarted finds them, and takes their startup probes for answered.
 */
export class Kubelet {
  readonly machine: Machine;
  readonly pods = new Map<string, PodOnNode>();
  readonly link: Link;
  readonly #deps: KubeletDeps;
  readonly #who: Who;
  /** The API's Pods of this node, as the kubelet knows them. */
  readonly #known = new Map<string, RawPod>();
  readonly #reported = new Map<string, object>();
  /** The kubelet process whose report of this Pod is on its way. */
  readonly #writing = new Map<string, Proc>();
  /** The Pods that have a worker; after a restart they get one with the first list. */
  readonly #working = new Set<PodOnNode>();
  /** Pods of which nothing is left here, though somebody's finalizer may keep their objects. */
  readonly #done = new Set<string>();
  #proc: Proc;
  #reflector: Reflector | undefined;
  #ids = 0;
  /** When it was last down, or had not yet listed its Pods. */
  lastDownAt = Number.NEGATIVE_INFINITY;
  isSynced = false;
  #isRestarted = false;
  #cancelStart = () => {};

  constructor(deps: KubeletDeps) {
    this.#deps = deps;
    this.machine = deps.machine;
    this.#who = { kind: 'kubelet', name: deps.machine.name };
    this.link = this.newLink('node');
    this.#proc = new Proc(deps.machine, `kubelet ${deps.machine.name}`);
    this.#begin();
  }

  get proc(): Proc {
    return this.#proc;
  }

  newLink(name: string, below?: Link): Link {
    const { machine, random, everywhere, probe } = this.#deps;
    return new Link({ time: machine.time, random: random.fork(`link ${name}`), everywhere, below, probe });
  }

  /** Stops the kubelet, and starts it again after `downMs`, also if it was to start sooner. Containers go on. */
  restart(downMs: number, opensGates: boolean): void {
    this.#proc.kill();
    this.#cancelStart();
    this.isSynced = false;
    this.#isRestarted = true;
    const { time } = this.machine;
    this.lastDownAt = time.now() + downMs;
    this.#cancelStart = time.after(downMs, () => {
      this.#proc = new Proc(this.machine, `kubelet ${this.machine.name}`);
      this.lastDownAt = time.now();
      for (const pod of this.pods.values()) {
        pod.isProbing = false;
        pod.isTerminating = false;
        pod.showsEnd = pod.isFinished;
        // Seen on 1.36.3: probes of running sidecars count as answered after a restart.
        if (opensGates && pod.isRunning(SIDECAR_CONTAINER)) pod.isStarted = true;
      }
      this.#working.clear();
      this.#reported.clear();
      this.#known.clear();
      this.#begin();
    });
  }

  breakWatch(expired: boolean): void {
    this.#reflector?.break(expired);
  }

  wakeSoon(pod: PodOnNode): void {
    // The kubelet notices by events or by looking, which it does each second.
    this.#proc.setTimer(this.#deps.random.between(50, 700), () => this.#wake(pod));
  }

  /**
   * The runtime forgets all containers of a Pod; their processes go on.
   *
   * `madeUp`: the kubelet does not begin anew but declares the Pod failed, by statuses that it makes up.
   */
  loseState(pod: PodOnNode, madeUp: MadeUp | undefined): void {
    if (pod.sidecar?.proc.alive === true) pod.orphanSidecars.push(pod.sidecar);
    for (const program of pod.programs.values()) if (program.alive) pod.orphans.add(program);
    pod.programs.clear();
    pod.containers.clear();
    pod.statesLost += 1;
    this.#deps.watcher.stateLost(pod);
    pod.isStarted = false;
    pod.isProbing = false;
    pod.madeUp = madeUp;
    if (madeUp !== undefined) pod.isFinished = true;
    else pod.lastExcuseAt = this.machine.time.now();
    this.wakeSoon(pod);
  }

  #begin(): void {
    const { store, random, staleLists } = this.#deps;
    const name = this.machine.name;
    this.#reflector = new Reflector({
      proc: this.#proc,
      link: this.link,
      store,
      random: random.fork('watch'),
      resource: 'pods',
      path: '/api/v1/pods',
      wants: (object) => (object.spec as RawPod['spec'] | undefined)?.nodeName === name,
      staleLists,
      listed: (items) => {
        const listed = new Set(items.map((item) => item.metadata.uid));
        for (const uid of this.#known.keys()) if (!listed.has(uid)) this.#podRemoved(uid);
        for (const uid of this.pods.keys()) if (!listed.has(uid)) this.#podRemoved(uid);
        for (const item of items) this.#podSeen(item);
        for (const pod of this.pods.values()) this.#startWorker(pod);
        if (!this.isSynced && this.#isRestarted) this.lastDownAt = this.machine.time.now();
        this.isSynced = true;
      },
      changed: ({ type, object }) => {
        if (type === 'DELETED') this.#podRemoved(object.metadata.uid);
        else this.#podSeen(object);
      },
    });
    this.#reflector.start();
  }

  #podSeen(object: Obj): void {
    const { uid, resourceVersion } = object.metadata;
    const known = this.#known.get(uid);
    if (known !== undefined && Number(known.metadata.resourceVersion) >= Number(resourceVersion)) return;
    this.#known.set(uid, object as unknown as RawPod);
    let pod = this.pods.get(uid);
    if (pod === undefined) {
      const plan = this.#deps.planOf(uid);
      if (plan === undefined || this.#done.has(uid)) return;
      pod = new PodOnNode(plan);
      this.pods.set(uid, pod);
      this.#startWorker(pod);
    }
    // A later deletion may shorten the grace period, from now on.
    const { deletionGracePeriodSeconds } = object.metadata;
    if (deletionGracePeriodSeconds !== undefined) {
      pod.killAt = Math.min(pod.killAt, this.machine.time.now() + this.#graceMs(deletionGracePeriodSeconds));
    }
    this.#wake(pod);
    this.#proc.setTimer(RECONCILE_MS, () => this.#reconcile(uid));
  }

  /** A report that came late, after a later one, is put right, as the real kubelet does every 10 s. */
  #reconcile(uid: string): void {
    const pod = this.pods.get(uid);
    const known = this.#known.get(uid);
    const reported = this.#reported.get(uid);
    if (pod === undefined || known === undefined || reported === undefined) return;
    const shown = (known.status ?? {}) as Readonly<Record<string, unknown>>;
    const isShown = Object.entries(keepEnd(known, reported)).every(([key, value]) => sameJson(shown[key], value));
    if (isShown) return;
    this.#reported.delete(uid);
    this.#report(pod, this.#proc);
  }

  #podRemoved(uid: string): void {
    this.#known.delete(uid);
    const pod = this.pods.get(uid);
    if (pod !== undefined) this.#wake(pod);
  }

  #wake(pod: PodOnNode): void {
    pod.isWoken = true;
    pod.wake();
  }

  #startWorker(pod: PodOnNode): void {
    if (this.#working.has(pod)) return;
    this.#working.add(pod);
    void this.#work(pod, this.#proc);
  }

  async #work(pod: PodOnNode, proc: Proc): Promise<void> {
    const { time } = this.machine;
    while (proc === this.#proc && !pod.isGone) {
      pod.isWoken = false;
      if (pod.busyUntil > time.now()) {
        pod.busyFor = proc;
        await sleep(proc, pod.busyUntil - time.now());
        pod.busyFor = undefined;
        pod.busyUntil = Math.max(pod.busyUntil, time.now());
      }
      await this.#sync(pod, proc);
      this.#report(pod, proc);
      if (!pod.isWoken && !pod.isGone) {
        await new Promise<void>((resolve) => {
          pod.wake = () => proc.deliver(resolve);
        });
      }
    }
  }

  async #sync(pod: PodOnNode, proc: Proc): Promise<void> {
    const known = this.#known.get(pod.plan.uid);
    const phase = known?.status?.phase;
    const endedByOthers = (phase === 'Failed' || phase === 'Succeeded') && !pod.isFinished;
    if (known === undefined || known.metadata.deletionTimestamp !== undefined || endedByOthers) {
      return this.#terminate(pod, proc, known);
    }
    if (pod.isFinished) return;
    const sidecar = pod.ended(SIDECAR_CONTAINER);
    if (sidecar !== undefined && restartsAll(sidecar.code)) return this.#restartAll(pod, proc);
    if (!pod.containers.has(RESET_CONTAINER)) return this.#runReset(pod, proc);
    const reset = pod.ended(RESET_CONTAINER);
    if (reset === undefined) return;
    if (reset.code !== 0) return this.#again(pod, proc, RESET_CONTAINER);
    if (!pod.isRunning(SIDECAR_CONTAINER)) return this.#runSidecar(pod, proc);
    if (!pod.isStarted) return this.#probe(pod, proc);
    await this.#runPrograms(pod, proc);
  }

  async #runReset(pod: PodOnNode, proc: Proc): Promise<void> {
    await sleep(proc, this.#deps.random.between(50, 300));
    pod.life += 1;
    const container = this.#add(pod, RESET_CONTAINER);
    const reset = new Proc(this.machine, `reset ${pod.plan.name}`);
    startReset({ proc: reset, files: pod.files, exited: (code) => this.#exited(pod, container, code) });
  }

  async #runSidecar(pod: PodOnNode, proc: Proc): Promise<void> {
    const { plan } = pod;
    if (pod.containers.get(SIDECAR_CONTAINER)?.isRecordLost === true) pod.lastExcuseAt = this.machine.time.now();
    await sleep(proc, this.#deps.random.between(100, 500));
    const container = this.#add(pod, SIDECAR_CONTAINER);
    const { store, random, watcher } = this.#deps;
    const name = `sidecar ${plan.name}`;
    pod.isStarted = false;
    pod.isProbing = false;
    const own = new Proc(this.machine, name);
    pod.sidecar = startSidecar(
      {
        proc: own,
        link: this.newLink(`${name} ${container.id}`, this.link),
        store,
        files: pod.files,
        random: random.fork(`${name} ${container.id}`),
        sign: () => this.#known.get(plan.uid)?.metadata.annotations?.[TOKEN_ANNOTATION] ?? '',
        tell: (view) => {
          if (plan.mode !== 'standby') return;
          for (const program of pod.livingPrograms()) program.told(view, () => standDown(pod));
        },
        exited: (code, explanation) => {
          watcher.sidecarEnded(pod, code, explanation);
          this.#exited(pod, container, code);
        },
      },
      plan,
    );
    if (!own.alive) return;
    this.#probe(pod, proc);
  }

  #probe(pod: PodOnNode, proc: Proc): void {
    if (pod.isProbing || pod.sidecar === undefined) return;
    pod.isProbing = true;
    const asked = pod.sidecar;
    asked.probe(() =>
      this.machine.time.after(this.#deps.random.between(1, 20), () =>
        proc.deliver(() => {
          if (pod.sidecar !== asked) return;
          pod.isStarted = true;
          this.#wake(pod);
        }),
      ),
    );
  }

  async #runPrograms(pod: PodOnNode, proc: Proc): Promise<void> {
    const { plan } = pod;
    for (const name of gatedNames(plan)) {
      if (pod.isRunning(name)) {
        if (name === 'migrate') return;
        continue;
      }
      const end = pod.ended(name);
      if (end !== undefined && !isRestarted(plan, name, end.code)) continue;
      if (end !== undefined) return this.#again(pod, proc, name);
      const isCreated = await this.#createProgram(pod, proc, name);
      if (!isCreated || name === 'migrate') return;
    }
    const apps = plan.programs.map((_, index) => `app-${index}`);
    if (apps.every((name) => pod.ended(name) !== undefined)) await this.#finish(pod, proc);
  }

  async #createProgram(pod: PodOnNode, proc: Proc, name: string): Promise<boolean> {
    const { plan, files } = pod;
    const { random, watcher, historyOf } = this.#deps;
    const env = files.env();
    if (pod.badImageUntil > this.machine.time.now() && name !== 'migrate') {
      proc.setTimer(random.between(2_000, 10_000), () => this.#wake(pod));
      return false;
    }
    if (plan.mode === 'gate' && env === undefined) {
      proc.setTimer(random.between(2_000, 10_000), () => this.#wake(pod));
      return false;
    }
    const token = plan.mode === 'gate' ? BigInt(env ?? '0') : undefined;
    watcher.programCreated(pod, token);
    const { statesLost } = pod;
    await sleep(proc, random.between(50, 300));
    const container = this.#add(pod, name);
    const behaviour = behaviourOf(plan, name);
    const program = new Program(
      {
        proc: new Proc(this.machine, `${name} ${plan.name}`),
        life: pod.lifeName,
        behaviour,
        history: historyOf(plan.lock),
        random: random.fork(`program ${container.id}`),
        endsByItselfUntilMs: this.#deps.calmFromMs,
        sidecar: pod.sidecar,
        exited: (code) => this.#exited(pod, container, code),
      },
      token,
    );
    if (statesLost !== pod.statesLost) {
      // The runtime lost its state while it made this container.
      pod.orphans.add(program);
      pod.containers.delete(name);
      return false;
    }
    pod.programs.set(name, program);
    const view = pod.sidecar?.proc.alive === true ? pod.sidecar.view() : undefined;
    if (plan.mode === 'standby' && view !== undefined) program.told(view, () => standDown(pod));
    return true;
  }

  /** An exited container is started again after a back-off; its record goes only then. */
  #again(pod: PodOnNode, proc: Proc, name: string): void {
    const container = pod.containers.get(name);
    const exitedAt = container?.exit?.at ?? 0;
    const waitMs = (pod.restarts.get(name) ?? 0) === 0 ? 100 : CRASH_BACKOFF_MS;
    const leftMs = exitedAt + waitMs - this.machine.time.now();
    if (leftMs > 0) return void proc.setTimer(leftMs, () => this.#wake(pod));
    this.#forget(pod, name);
    pod.isWoken = true;
  }

  /** RestartAllContainers: kills one program after another, then begins with the init phase again. */
  async #restartAll(pod: PodOnNode, proc: Proc): Promise<void> {
    for (const name of gatedNames(pod.plan)) {
      const program = pod.programs.get(name);
      if (program?.alive !== true) continue;
      const killAt = this.machine.time.now() + LEAST_GRACE_MS + this.#deps.random.between(0, 80);
      await this.#stop(program, proc, () => killAt);
    }
    for (const name of pod.containers.keys()) this.#forget(pod, name);
    pod.programs.clear();
    pod.isStarted = false;
    pod.isProbing = false;
    pod.isWoken = true;
    this.#deps.watcher.note(proc.name, () => `restarted all containers of ${pod.plan.name}`);
  }

  async #finish(pod: PodOnNode, proc: Proc): Promise<void> {
    await this.#stopSidecar(pod, proc, LEAST_GRACE_MS);
    pod.isFinished = true;
    proc.setTimer(this.#deps.random.between(1_000, 2_000), () => {
      pod.showsEnd = true;
      this.#report(pod, proc);
    });
  }

  /** A Pod that is being deleted, is gone at the API server, or was declared ended by somebody else. */
  async #terminate(pod: PodOnNode, proc: Proc, known: RawPod | undefined): Promise<void> {
    const { plan } = pod;
    const { time } = this.machine;
    if (!pod.isFinished) {
      pod.isTerminating = true;
      const graceSeconds = known?.metadata.deletionGracePeriodSeconds ?? plan.graceSeconds;
      pod.killAt = time.now() + this.#graceMs(graceSeconds);
      const programs = [...pod.programs.values()].filter((program) => program.alive);
      await Promise.all(programs.map((program) => this.#stop(program, proc, () => pod.killAt, pod)));
      await this.#stopSidecar(pod, proc, Math.max(LEAST_GRACE_MS, pod.killAt - time.now()));
      for (const name of [RESET_CONTAINER]) {
        const container = pod.containers.get(name);
        if (container !== undefined) container.exit ??= { code: 137, at: time.now() };
      }
      pod.isFinished = true;
      this.#report(pod, proc);
      await sleep(proc, this.#deps.random.between(1_000, 2_000));
    }
    pod.showsEnd = true;
    this.#report(pod, proc);
    if (known !== undefined && known.metadata.deletionTimestamp === undefined) return;
    if (known !== undefined) await this.#deleteForGood(pod, proc);
    pod.isGone = true;
    this.#done.add(plan.uid);
    this.pods.delete(plan.uid);
    this.#working.delete(pod);
  }

  #graceMs(graceSeconds: number): number {
    return Math.max(LEAST_GRACE_MS, (graceSeconds * 1000) / this.machine.rate);
  }

  async #deleteForGood(pod: PodOnNode, proc: Proc): Promise<void> {
    const { namespace, name, uid } = pod.plan;
    const path = `/api/v1/namespaces/${namespace}/pods/${name}`;
    const body = { gracePeriodSeconds: 0, preconditions: { uid } };
    while (!(await this.#send(proc, 'DELETE', path, body))) await sleep(proc, 1_000);
  }

  /** SIGTERM, then SIGKILL when `killAt` has come. Just before, the sidecar of a terminating Pod gets SIGTERM as well. */
  #stop(program: Program, proc: Proc, killAt: () => number, pod?: PodOnNode): Promise<void> {
    program.terminate();
    const earlyMs = this.#deps.random.between(0, 200);
    let isTold = false;
    return new Promise((resolve) => {
      const look = () => {
        if (!program.alive) return resolve();
        const leftMs = killAt() - this.machine.time.now();
        if (leftMs <= earlyMs && !isTold) {
          isTold = true;
          pod?.sidecar?.terminate();
        }
        if (leftMs <= 1) {
          program.kill();
          return resolve();
        }
        proc.setTimer(Math.min(leftMs, 100), look);
      };
      look();
    });
  }

  async #stopSidecar(pod: PodOnNode, proc: Proc, graceMs: number): Promise<void> {
    const container = pod.containers.get(SIDECAR_CONTAINER);
    if (container === undefined || container.exit !== undefined) return;
    pod.sidecar?.terminate();
    const until = this.machine.time.now() + graceMs;
    while (container.exit === undefined && this.machine.time.now() < until) await sleep(proc, 50);
    if (container.exit !== undefined) return;
    pod.sidecar?.proc.kill();
    container.exit = { code: 137, at: this.machine.time.now() };
  }

  #add(pod: PodOnNode, name: string): Container {
    this.#ids += 1;
    const id = `containerd://${this.machine.name}-${this.#ids}`;
    const container: Container = {
      name,
      id,
      startedAt: this.machine.time.now(),
      exit: undefined,
      isRecordLost: false,
    };
    if (pod.containers.has(name)) pod.restarts.set(name, (pod.restarts.get(name) ?? 0) + 1);
    pod.containers.set(name, container);
    return container;
  }

  #forget(pod: PodOnNode, name: string): void {
    if (!pod.containers.delete(name)) return;
    pod.restarts.set(name, (pod.restarts.get(name) ?? 0) + 1);
  }

  /** A process has ended, which the kubelet notices in its own time. */
  #exited(pod: PodOnNode, container: Container, code: number): void {
    if (container.exit !== undefined) return;
    container.exit = { code, at: this.machine.time.now() };
    if (this.#proc.alive) this.wakeSoon(pod);
  }

  #report(pod: PodOnNode, proc: Proc): void {
    const { uid, namespace, name } = pod.plan;
    if (!proc.alive || this.#known.get(uid) === undefined) return;
    // One after the other: a late earlier report must not stand over a later one for ever.
    if (this.#writing.get(uid) === proc) return;
    const status = podStatus(pod);
    if (sameJson(this.#reported.get(uid), status)) return;
    this.#reported.set(uid, status);
    this.#writing.set(uid, proc);
    const path = `/api/v1/namespaces/${namespace}/pods/${name}/status`;
    void this.#write(pod, proc, { path, body: { metadata: { uid }, status: keepEnd(this.#known.get(uid), status) } });
  }

  async #write(pod: PodOnNode, proc: Proc, { path, body }: { path: string; body: object }): Promise<void> {
    const isDone = await this.#send(proc, 'PATCH', path, body);
    this.#writing.delete(pod.plan.uid);
    if (pod.isGone) return;
    if (isDone) return this.#report(pod, proc);
    this.#reported.delete(pod.plan.uid);
    proc.setTimer(1_000, () => this.#report(pod, proc));
  }

  /** Whether there is nothing left to do: done, or the object is another or gone. */
  #send(proc: Proc, verb: string, path: string, body: object): Promise<boolean> {
    const { store } = this.#deps;
    return new Promise((resolve) => {
      this.link.call(
        {
          proc,
          what: `${verb} ${path}`,
          isWrite: true,
          timeoutMs: REQUEST_TIMEOUT_MS,
          run: () => carryOut(store, { verb, path, body }, this.#who),
        },
        (outcome) =>
          resolve(
            outcome.kind === 'ok' ||
              (outcome.kind === 'refused' && (outcome.refusal.status === 404 || outcome.refusal.status === 409)),
          ),
      );
    });
  }
}

/** The injected rule: RestartAllContainers on every code but 0. */
const restartsAll = (code: number): boolean => code !== 0;

/** A Pod does not leave a terminal phase; conditions of others stay. */
function keepEnd(known: RawPod | undefined, status: NonNullable<RawPod['status']>): object {
  const phase = known?.status?.phase;
  const foreign = known?.status?.conditions?.filter((condition) => condition.type === 'DisruptionTarget') ?? [];
  const ended = phase === 'Failed' || phase === 'Succeeded';
  return { ...status, ...(ended && { phase }), conditions: [...(status.conditions ?? []), ...foreign] };
}

function isRestarted(plan: PodPlan, name: string, code: number): boolean {
  if (name === 'migrate') return code !== 0;
  return plan.restartPolicy === 'Always' || (plan.restartPolicy === 'OnFailure' && code !== 0);
}

/** The Pod says that it has stopped once all its programs have. */
function standDown(pod: PodOnNode): void {
  if (pod.livingPrograms().every(({ token }) => token === undefined)) pod.sidecar?.standDown();
}

function behaviourOf(plan: PodPlan, name: string): ProgramBehaviour {
  const behaviour = name === 'migrate' ? plan.gatedInit : plan.programs[Number(name.slice('app-'.length))];
  if (behaviour === undefined) throw new Error(`No program ${name}`);
  return behaviour;
}

function sleep(proc: Proc, ms: number): Promise<void> {
  return new Promise((resolve) => {
    proc.setTimer(ms, resolve);
  });
}
