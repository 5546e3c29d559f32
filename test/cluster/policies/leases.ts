/** Leases of locks, and the writes that change them: what the operator, a holder and others send. */
import type { Answer, Identity, KubeObject } from '../../support/kube.ts';
import { openWorld, type TestPod, type World } from './world.ts';

export interface Lease {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly resourceVersion?: string;
    readonly labels: Readonly<Record<string, string>>;
    readonly annotations: Readonly<Record<string, string>>;
  } & Readonly<Record<string, unknown>>;
  readonly spec: Readonly<Record<string, unknown>>;
}

/** The Lease `kilit.billing` is held by Pod `holder`, `kilit.spare` is free. */
export async function openLeaseWorld(): Promise<World> {
  const world = await openWorld('lease');
  const { operator, holder } = world.who;
  for (const lock of ['billing', 'spare']) {
    await world.kube.must('POST', leasePath(world), { as: operator, body: aLease(lock) });
  }
  await write(world, operator, toHolder(await readLease(world, 'kilit.billing'), world));
  await write(world, holder, renewed(await readLease(world, 'kilit.billing')));
  return world;
}

export const leasePath = (world: World, name = ''): string =>
  `/apis/coordination.k8s.io/v1/namespaces/${world.namespace}/leases${name === '' ? '' : `/${name}`}`;

/** As the operator creates it: free, token "0". */
export const aLease = (lock: string): Lease => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: {
    name: `kilit.${lock}`,
    labels: { 'kilit.dev/lock': lock },
    annotations: { 'kilit.dev/fencing-token': '0' },
  },
  spec: { holderIdentity: '', leaseDurationSeconds: 15 },
});

/** A time as Leases want it: six fraction digits. */
export const microTime = (date: Date): string => date.toISOString().replace('Z', '000Z');

/** The operator's grant of `lease` to a Pod, as the rule demands it; `base` is the cluster's token base. */
export function granted(lease: Lease, pod: TestPod, base: bigint): Lease {
  const byRevision = BigInt(lease.metadata.resourceVersion ?? '0') + base;
  const byToken = BigInt(lease.metadata.annotations['kilit.dev/fencing-token'] ?? '0') + 1n;
  const now = microTime(new Date());
  return withSpec(
    withAnnotations(lease, {
      'kilit.dev/fencing-token': String(byRevision > byToken ? byRevision : byToken),
      'kilit.dev/takeover-delay-seconds': '5',
      'kilit.dev/grace-seconds': '30',
      'kilit.dev/node': 'node1',
    }),
    {
      holderIdentity: `${pod.name}_${pod.uid}`,
      leaseDurationSeconds: 15,
      acquireTime: now,
      renewTime: now,
      leaseTransitions: Number(lease.spec.leaseTransitions ?? 0) + 1,
    },
  );
}

export const toHolder = (lease: Lease, { holder, base }: World): Lease => granted(lease, holder, base);
export const toSibling = (lease: Lease, { sibling, base }: World): Lease => granted(lease, sibling, base);
export const renewed = (lease: Lease): Lease => withSpec(lease, { renewTime: microTime(new Date()) });
export const released = (lease: Lease): Lease => withSpec(lease, { holderIdentity: '' });

/** Fields that are `undefined` are removed. */
export const withSpec = (lease: Lease, spec: Readonly<Record<string, unknown>>): Lease => ({
  ...lease,
  spec: { ...lease.spec, ...spec },
});
export const withMetadata = (lease: Lease, metadata: Readonly<Record<string, unknown>>): Lease => ({
  ...lease,
  metadata: { ...lease.metadata, ...metadata },
});
export const withAnnotations = (lease: Lease, annotations: Readonly<Record<string, string>>): Lease =>
  withMetadata(lease, { annotations: { ...lease.metadata.annotations, ...annotations } });

export async function readLease(world: World, name: string): Promise<Lease> {
  return (await world.kube.must('GET', leasePath(world, name))) as unknown as Lease;
}

/** Really replaces a Lease, for the state that the attempts start from. */
export async function write(world: World, as: Identity, lease: Lease): Promise<KubeObject> {
  return world.kube.must('PUT', leasePath(world, lease.metadata.name), { as, body: lease });
}

/** An attempt that replaces `name` by what `change` makes of its present state. */
export const replacing =
  (name: string, change: (lease: Lease, world: World) => Lease) =>
  async (world: World, as: Identity): Promise<Answer> => {
    const lease = await readLease(world, name);
    return world.kube.ask('PUT', `${leasePath(world, name)}?dryRun=All`, { as, body: change(lease, world) });
  };

/** An attempt that creates a Lease. */
export const creating =
  (lease: (world: World) => Lease) =>
  (world: World, as: Identity): Promise<Answer> =>
    world.kube.ask('POST', `${leasePath(world)}?dryRun=All`, { as, body: lease(world) });
