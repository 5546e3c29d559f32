/** The interface by which tests, the demo and the fault harness see a cluster, whichever provider runs it. */

export type ProviderName = 'native' | 'kind' | 'existing';
export type OnProgress = (line: string) => void;

export interface OpenOptions {
  /** @default 'dev' */
  readonly name?: string;
  /** 1 to 4; a running cluster is extended, never shrunk. @default 1 */
  readonly nodes?: number;
  /** @default the first that works of existing (only if named), kind, native */
  readonly provider?: ProviderName;
  /** For provider `existing`. The default kubeconfig of the user is never read. */
  readonly kubeconfig?: string;
  readonly context?: string;
  /** For provider `native`. @default KUBERNETES_VERSION */
  readonly kubernetesVersion?: string;
  /** etcd syncs to disk on every write; for measurements that claim durability. @default false */
  readonly fsync?: boolean;
  readonly onProgress?: OnProgress;
}

export interface KubectlOptions {
  /** Given to the command as its standard input. */
  readonly input?: string;
  /** @default 600 */
  readonly timeoutSeconds?: number;
}

/**
 * A program of the cluster that the fault harness can stop.
 *
 * `pause` freezes it with its connections open (SIGSTOP); `kill` is SIGKILL; `stop` asks it to end (SIGTERM, then
 * SIGKILL after 15 s). Nothing restarts it but `restart`, `up` and `openCluster`. All return when the effect is there;
 * `restart` of etcd, the API server and containerd when they answer again, of the others when they are started.
 */
export interface Component {
  readonly name: string;
  pause(): Promise<void>;
  resume(): Promise<void>;
  kill(): Promise<void>;
  stop(): Promise<void>;
  restart(): Promise<void>;
  isRunning(): Promise<boolean>;
}

export interface ClusterNode {
  readonly name: string;
  stopKubelet(): Promise<void>;
  startKubelet(): Promise<void>;
  restartKubelet(): Promise<void>;
  /** Runs containerd's own client against this node's containerd, namespace k8s.io; returns its output. */
  ctr(args: readonly string[]): Promise<string>;
  /**
   * The PIDs on this machine of every running container of a Pod; the first of each is the container's init process.
   * Works while containerd or the kubelet is stopped. Empty when the Pod has no running container here.
   */
  pidsOfPod(podUid: string): Promise<ReadonlyMap<string, readonly number[]>>;
  /** Signals the container's init process, behind the kubelet's back. @default SIGKILL */
  killContainer(podUid: string, container: string, signal?: NodeJS.Signals): Promise<void>;
  /** Removes the container, stopped or not, from containerd by its CRI, so that the kubelet never learns its exit status. */
  removeContainerRecord(podUid: string, container: string): Promise<void>;
  /** Drops all packets between a Pod and the API server, both ways, open connections too. */
  cutPod(podUid: string): Promise<void>;
  healPod(podUid: string): Promise<void>;
  /** Takes the whole node, its kubelet and its Pods off the network; the programs run on. */
  cutNetwork(): Promise<void>;
  healNetwork(): Promise<void>;
}

export interface Cluster {
  readonly name: string;
  readonly provider: ProviderName;
  readonly kubeconfigPath: string;
  readonly kubernetesVersion: string;
  readonly nodes: readonly ClusterNode[];
  node(name: string): ClusterNode;
  /** Returns the standard output; throws with the standard error in the message. */
  kubectl(args: readonly string[], options?: KubectlOptions): Promise<string>;
  helm(args: readonly string[], options?: KubectlOptions): Promise<string>;
  /** Path of the binary, for programs that must be started by the test itself. */
  readonly kubectlPath: string;
  readonly helmPath: string;
  /** Loads images made by this harness (by name, built when missing or old) or archives (by path) into every node. */
  loadImage(...imagesOrArchives: readonly string[]): Promise<void>;
  /**
   * `etcd`, `kube-apiserver`, `kube-controller-manager`, `kube-scheduler`, and per node `containerd-<node>`,
   * `kubelet-<node>`, `kube-proxy-<node>`.
   */
  component(name: string): Component;
  readonly components: readonly string[];
  /** Drops all packets between the API server and etcd; connections stay open. */
  cutEtcd(): Promise<void>;
  healEtcd(): Promise<void>;
  /**
   * Leads the nodes' and Pods' connections to the API server to a port of this machine, where something worse listens;
   * those that are open are reset. This machine's own programs reach the API server as before.
   */
  divertApiServer(port: number): Promise<void>;
  restoreApiServer(): Promise<void>;
  /** Copies the logs of every component and the state of every object into a folder. */
  collectLogs(dir: string): Promise<void>;
  down(): Promise<void>;
}

/** Thrown for what a provider cannot do; the message says which one can. */
export class NotSupported extends Error {
  constructor(what: string, provider: ProviderName) {
    super(`${what} is not possible with provider '${provider}'. Use --provider native (Linux, root).`);
    this.name = 'NotSupported';
  }
}
