import {
  LOCK_LABEL,
  leaseName,
  RESET_CONTAINER,
  SIDECAR_CONTAINER,
  TOKEN_BASE_ANNOTATION,
} from '../../../src/api/names.ts';
import type { RawLease } from '../../../src/core/lease.ts';
import type { Meta, Obj, Who } from '../api/objects.ts';
import { admit } from '../api/policies.ts';
import { Store } from '../api/store.ts';
import { Checker } from '../check/checker.ts';
import type { LockWish, PodWish, Scenario } from '../run/scenario.ts';
import { History } from './history.ts';
import { Kubelet } from './kubelet.ts';
import { Machine, Proc } from './machine.ts';
import { type CallProbe, clearSky, Link } from './network.ts';
import { type OperatorProcess, startOperator } from './operator.ts';
import type { PodOnNode, PodPlan } from './pod-on-node.ts';
import { createRandom, type Random } from './random.ts';
import { VirtualTime } from './time.ts';
import { Trace } from './trace.ts';

export const NAMESPACE = 'shop';
const OPERATOR_NAMESPACE = 'kilit-system';

const user: Who = { kind: 'user', name: 'alice' };
const controller: Who = { kind: 'controller', name: 'kube-controller-manager' };
export const collector: Who = { kind: 'collector', name: 'generic-garbage-collector' };

/** A small cluster: API server, nodes, operators, locks, Pods, and the resource that the programs write to. */
export class World {
  readonly scenario: Scenario;
  readonly time = new VirtualTime();
  readonly random: Random;
  readonly store: Store;
  readonly trace: Trace;
  readonly checker: Checker;
  readonly everywhere = clearSky();
  readonly kubelets = new Map<string, Kubelet>();
  readonly operators = new Map<string, OperatorProcess>();
  readonly histories = new Map<string, History>();
  readonly #plans = new Map<string, PodPlan>();
  readonly #machines = new Map<string, Machine>();
  readonly #probe: CallProbe | undefined;
  #starts = 0;

  constructor(scenario: Scenario, options: { readonly traced?: boolean; readonly probe?: CallProbe } = {}) {
    this.scenario = scenario;
    this.random = createRandom(scenario.seed, 'world');
    this.#probe = options.probe;
    this.trace = new Trace(this.time, options.traced ?? false);
    this.store = new Store({ time: this.time, admit, operatorNamespace: OPERATOR_NAMESPACE });
    this.checker = new Checker(this);
    this.store.onChange((change) => {
      this.trace.change(change);
      this.checker.changed(change);
    });
    this.#collectGarbage();
    this.#begin();
  }

  #begin(): void {
    const { scenario, store } = this;
    const annotations = { [TOKEN_BASE_ANNOTATION]: scenario.tokenBase };
    store.create('namespaces', { metadata: { name: OPERATOR_NAMESPACE, annotations } }, user);
    for (const { name, rate } of scenario.nodes) {
      const machine = new Machine(this.time, name, rate);
      this.createNode(name);
      this.kubelets.set(name, this.#newKubelet(machine));
    }
    for (const { name, rate } of scenario.operators) {
      this.#machines.set(name, new Machine(this.time, name, rate));
      this.startOperator(name);
    }
    this.operators.get(scenario.operators[0]?.name ?? '')?.lead(true);
    for (const lock of scenario.locks) this.time.at(lock.createdAtMs, () => this.createLock(lock));
    for (const pod of scenario.pods) this.time.at(pod.createdAtMs, () => this.createPod(pod));
  }

  #newKubelet(machine: Machine): Kubelet {
    return new Kubelet({
      machine,
      store: this.store,
      random: this.random.fork(machine.name),
      everywhere: this.everywhere,
      planOf: (uid) => this.#plans.get(uid),
      historyOf: (lock) => this.historyOf(lock),
      watcher: this.checker,
      probe: this.#probe,
      staleLists: this.scenario.staleLists,
      calmFromMs: this.scenario.calmFromMs,
    });
  }

  historyOf(lock: string): History {
    let history = this.histories.get(lock);
    if (history === undefined) {
      history = new History();
      this.histories.set(lock, history);
    }
    return history;
  }

  /** Starts a replica anew; the one that ran before under this name must be dead. */
  startOperator(name: string): OperatorProcess {
    const machine = this.#machines.get(name);
    if (machine === undefined) throw new Error(`No operator ${name}`);
    this.#starts += 1;
    const random = this.random.fork(`${name} ${this.#starts}`);
    const proc = new Proc(machine, name);
    const link = new Link({
      time: this.time,
      random: random.fork('link'),
      everywhere: this.everywhere,
      probe: this.#probe,
    });
    const operator = startOperator({
      proc,
      link,
      store: this.store,
      random,
      namespace: OPERATOR_NAMESPACE,
      staleLists: this.scenario.staleLists,
      passed: (key, observed, now) => this.checker.passed(key, observed, now),
      done: (action) => this.trace.note(name, () => `did ${action.kind}`),
    });
    this.operators.set(name, operator);
    return operator;
  }

  machineOf(operator: string): Machine | undefined {
    return this.#machines.get(operator);
  }

  createNode(name: string): void {
    if (this.store.get('nodes', undefined, name) !== undefined) return;
    this.store.create('nodes', { metadata: { name }, status: nodeStatus(true) }, controller);
  }

  setNodeReady(name: string, isReady: boolean): void {
    this.attempt(() =>
      this.store.update('nodes', { namespace: undefined, name }, (old) => ({ ...old, status: nodeStatus(isReady) }), {
        who: controller,
      }),
    );
  }

  setCordoned(name: string, isCordoned: boolean): void {
    const spec = isCordoned ? { unschedulable: true } : {};
    this.attempt(() =>
      this.store.update('nodes', { namespace: undefined, name }, (old) => ({ ...old, spec }), { who: user }),
    );
  }

  createLock({ name, leaseDurationSeconds, takeoverDelaySeconds, terms }: Omit<LockWish, 'createdAtMs'>): void {
    if (this.store.get('distributedlocks', NAMESPACE, name) !== undefined) return;
    const spec = { leaseDurationSeconds, takeoverDelaySeconds, ...terms };
    this.store.create(
      'distributedlocks',
      { kind: 'DistributedLock', metadata: { name, namespace: NAMESPACE }, spec },
      user,
    );
  }

  /** Creates a Pod as admission leaves it: with the sidecar; a scheduler finds it a node a little later. */
  createPod(wish: PodWish): void {
    if (this.store.get('pods', NAMESPACE, wish.name) !== undefined) return;
    const plan: PodPlan = { ...wish, namespace: NAMESPACE, uid: '' };
    const inits = [
      { name: RESET_CONTAINER },
      { name: SIDECAR_CONTAINER, restartPolicy: 'Always' },
      ...(plan.gatedInit === undefined ? [] : [{ name: 'migrate' }]),
    ];
    const pod = this.store.create(
      'pods',
      {
        metadata: { name: wish.name, namespace: NAMESPACE, ...madeBy(wish) },
        spec: {
          terminationGracePeriodSeconds: wish.graceSeconds,
          containers: wish.programs.map((_, index) => ({ name: `app-${index}` })),
          initContainers: inits,
        },
        status: { phase: 'Pending' },
      },
      user,
    );
    const { uid } = pod.metadata;
    this.#plans.set(uid, { ...plan, uid });
    this.time.after(this.random.fork(`pod ${wish.name} ${uid}`).between(50, 1_500), () =>
      this.attempt(() =>
        this.store.update(
          'pods',
          { namespace: NAMESPACE, name: wish.name },
          (old) => ({ ...old, spec: { ...old.spec, nodeName: wish.node } }),
          { who: controller, uid },
        ),
      ),
    );
  }

  deletePod(name: string, graceSeconds: number): void {
    this.attempt(() => this.store.delete('pods', { namespace: NAMESPACE, name }, { who: user, graceSeconds }));
  }

  /** A refusal of the API server is a normal answer to whoever tries. */
  attempt(write: () => unknown): boolean {
    try {
      write();
      return true;
    } catch (err) {
      this.trace.note('api', () => `refused: ${err instanceof Error ? err.message : String(err)}`);
      return false;
    }
  }

  lockOf(lock: string): Obj | undefined {
    return this.store.get('distributedlocks', NAMESPACE, lock);
  }

  leaseOf(lock: string): RawLease | undefined {
    return this.store.get('leases', NAMESPACE, leaseName(lock)) as unknown as RawLease | undefined;
  }

  /** Every Pod that has something left on a node. */
  *podsOnNodes(): IterableIterator<{ readonly pod: PodOnNode; readonly kubelet: Kubelet }> {
    for (const kubelet of this.kubelets.values()) for (const pod of kubelet.pods.values()) yield { pod, kubelet };
  }

  podOnNode(uid: string): { readonly pod: PodOnNode; readonly kubelet: Kubelet } | undefined {
    for (const found of this.podsOnNodes()) if (found.pod.plan.uid === uid) return found;
    return undefined;
  }

  planOf(uid: string): PodPlan | undefined {
    return this.#plans.get(uid);
  }

  /** The garbage collector deletes what a lock owned, a little after the lock is gone. */
  #collectGarbage(): void {
    this.store.onChange(({ type, resource, object }) => {
      if (resource !== 'distributedlocks' || type !== 'DELETED') return;
      const target = { namespace: NAMESPACE, name: leaseName(object.metadata.name) };
      for (const kind of ['leases', 'roles', 'rolebindings'] as const) {
        this.time.after(this.random.between(100, 3_000), () => {
          const present = this.store.get(kind, NAMESPACE, target.name);
          const owners = present?.metadata.ownerReferences ?? [];
          if (present === undefined || !owners.some((owner) => owner.uid === object.metadata.uid)) return;
          this.attempt(() => this.store.delete(kind, target, { who: collector, uid: present.metadata.uid }));
        });
      }
    });
  }
}

/** What admission and a Deployment's controller leave on a Pod. */
function madeBy({ lock, workload }: PodWish): Pick<Meta, 'labels' | 'ownerReferences'> {
  if (workload === undefined) return { labels: { [LOCK_LABEL]: lock } };
  const { name, revision } = workload;
  return {
    labels: { [LOCK_LABEL]: lock, 'pod-template-hash': revision },
    ownerReferences: [
      { kind: 'ReplicaSet', name: `${name}-${revision}`, uid: `uid-${name}-${revision}`, controller: true },
    ],
  };
}

function nodeStatus(isReady: boolean): NonNullable<Obj['status']> {
  return {
    conditions: [{ type: 'Ready', status: isReady ? 'True' : 'Unknown' }],
    nodeInfo: { kubeletVersion: 'v1.36.3' },
    declaredFeatures: ['RestartAllContainersOnContainerExits'],
  };
}
