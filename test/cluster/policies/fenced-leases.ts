/** Leases of other people's leader elections, labelled to be fenced, and what their libraries send. */
import type { Answer, Identity, KubeObject } from '../../support/kube.ts';
import { type Lease, leasePath, microTime, readLease, withSpec } from './leases.ts';
import type { World } from './world.ts';

export const TOKEN = 'kilit.dev/fencing-token';
export const TIME = 'kilit.dev/fenced-acquire-time';
export const FENCED = { 'kilit.dev/fenced': 'true' };

export interface ElectionLease {
  readonly name?: string;
  readonly holder?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** As client-go creates it: already held. */
export function anElection({ name = 'app', holder = 'a', labels = FENCED, annotations }: ElectionLease = {}): Lease {
  const now = microTime(new Date());
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { name, labels, ...(annotations !== undefined && { annotations }) } as Lease['metadata'],
    spec: { holderIdentity: holder, leaseDurationSeconds: 15, acquireTime: now, renewTime: now, leaseTransitions: 0 },
  };
}

/** As client-go takes over: another holder, new times, everything else of the object that it read. */
export function takenBy(holder: string, lease: Lease): Lease {
  const now = microTime(new Date());
  const leaseTransitions = Number(lease.spec.leaseTransitions ?? 0) + 1;
  return withSpec(lease, { holderIdentity: holder, acquireTime: now, renewTime: now, leaseTransitions });
}

/** Really creates it, as a person with the role `edit` whom no policy knows. */
export async function createElection(world: World, election: ElectionLease = {}): Promise<Lease> {
  return (await world.kube.must('POST', leasePath(world), {
    as: world.who.editor,
    body: anElection(election),
  })) as unknown as Lease;
}

/** Really replaces it by what `change` makes of its present state. Returns both. */
export async function change(
  world: World,
  name: string,
  make: (lease: Lease) => Lease,
): Promise<{ readonly before: Lease; readonly after: Lease }> {
  const before = await readLease(world, name);
  const after = await world.kube.must('PUT', leasePath(world, name), { as: world.who.editor, body: make(before) });
  return { before, after: after as unknown as Lease };
}

/** An attempt that patches a Lease. */
export const patching =
  (name: string, body: unknown, patch: 'merge' | 'apply' = 'merge') =>
  (world: World, as: Identity): Promise<Answer> =>
    world.kube.ask(
      'PATCH',
      `${leasePath(world, name)}?dryRun=All${patch === 'apply' ? '&fieldManager=me&force=true' : ''}`,
      {
        as,
        patch,
        body,
      },
    );

/** Token and acquireTime that a Lease carries. */
export const minted = ({ metadata }: Lease | KubeObject) => ({
  token: metadata?.annotations?.[TOKEN],
  time: metadata?.annotations?.[TIME],
});

/** What a grant that replaces `lease` must mint, as long as the revision does not fall. */
export const byRevision = (lease: Lease, base: bigint): string =>
  String(BigInt(lease.metadata.resourceVersion ?? '') + base);

export const withoutAnnotations = (lease: Lease): Lease => {
  const { annotations: _, ...metadata } = lease.metadata;
  return { ...lease, metadata: metadata as Lease['metadata'] };
};
