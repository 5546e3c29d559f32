/** Pods as the API server makes them of what an author wrote, in the parts that the injection touches. */
import type { Answer, Identity, KubeObject } from '../../support/kube.ts';
import { aPod, podPath, type World } from './world.ts';

export interface Mount {
  name: string;
  mountPath: string;
  readOnly?: boolean;
}

export interface EnvVar {
  name: string;
  value?: string;
  valueFrom?: {
    fieldRef?: { fieldPath: string };
    fileKeyRef?: { volumeName: string; path: string; key: string; optional?: boolean };
  };
}

export interface Container {
  name: string;
  image: string;
  command?: string[];
  args?: string[];
  env?: EnvVar[];
  envFrom?: unknown[];
  restartPolicy?: string;
  restartPolicyRules?: unknown[];
  livenessProbe?: unknown;
  startupProbe?: { httpGet?: { path: string; port: number } };
  ports?: { containerPort: number; hostPort?: number; name?: string }[];
  resources?: { requests?: Record<string, string>; limits?: Record<string, string> };
  securityContext?: Record<string, unknown>;
  volumeMounts?: Mount[];
}

export interface Volume {
  name: string;
  emptyDir?: { medium?: string; sizeLimit?: string };
  projected?: { sources: { serviceAccountToken?: { path: string; expirationSeconds: number } }[] };
  [source: string]: unknown;
}

/** Mutable on purpose: a test takes an injected Pod and spoils one thing. */
export interface Pod {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
    [field: string]: unknown;
  };
  spec: {
    initContainers: Container[];
    containers: Container[];
    volumes: Volume[];
    [field: string]: unknown;
  };
  status?: { qosClass?: string };
}

/** The answer to creating `pod`, as a dry run. */
export const create = (world: World, as: Identity, pod: unknown, namespace = world.namespace): Promise<Answer> =>
  world.kube.ask('POST', `${podPath(namespace)}?dryRun=All`, { as, body: pod });

/** What the API server makes of a Pod. Throws if it is refused. */
export async function inject(world: World, pod: KubeObject = aPod(), namespace = world.namespace): Promise<Pod> {
  const answer = await create(world, world.who.admin, pod, namespace);
  if (answer.status !== 201) throw new Error(`Pod refused: ${answer.status} ${answer.body.message ?? ''}`);
  return answer.body as unknown as Pod;
}

/** A manifest copied from a running Pod, as `kubectl get -o yaml` shows it, and created again elsewhere. */
export function copied(pod: Pod, name = 'copy'): Pod {
  const { metadata, spec } = structuredClone(pod);
  const { labels, annotations } = metadata;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ...(labels !== undefined && { labels }), ...(annotations !== undefined && { annotations }) },
    spec,
  };
}

/** An attempt that creates an injected Pod in which `spoil` changed something. */
export const creatingSpoilt =
  (spoil: (pod: Pod) => void, pod: KubeObject = aPod()) =>
  async (world: World, as: Identity): Promise<Answer> => {
    const copy = copied(await inject(world, pod));
    spoil(copy);
    return create(world, as, copy);
  };

export const creatingPod =
  (pod: KubeObject) =>
  (world: World, as: Identity): Promise<Answer> =>
    create(world, as, pod);

/** An attempt that merges `body` into a Pod, or into one of its subresources. */
export const patchingPod =
  (name: string, body: unknown, sub = '') =>
  (world: World, as: Identity): Promise<Answer> =>
    world.kube.ask('PATCH', `${podPath(world.namespace, name)}${sub && `/${sub}`}?dryRun=All`, {
      as,
      body,
      patch: sub === 'ephemeralcontainers' ? 'strategic' : 'merge',
    });

/** The named init container; throws if it is not there. */
export function initContainer(pod: Pod, name: string): Container {
  const found = pod.spec.initContainers.find((container) => container.name === name);
  if (found === undefined) throw new Error(`No init container '${name}'`);
  return found;
}

/** The container of that place; throws if it is not there. */
export function container(pod: Pod, index = 0): Container {
  const found = pod.spec.containers[index];
  if (found === undefined) throw new Error(`No container ${index}`);
  return found;
}

export const envOf = (from: Container, name: string): EnvVar | undefined => from.env?.find((e) => e.name === name);
export const mountOf = (from: Container, name: string): Mount | undefined =>
  from.volumeMounts?.find((m) => m.name === name);
