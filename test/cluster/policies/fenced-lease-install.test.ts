/** Fenced Leases while one of their policies is away, and what is found when they come back. */
import { describe, expect, test } from 'vitest';
import { helm } from '../../support/cluster.ts';
import { installArgs, OPERATOR_NAMESPACE } from '../../support/install.ts';
import { outcome, useWorld } from './attempts.ts';
import {
  byRevision,
  change,
  createElection,
  minted,
  patching,
  TIME,
  TOKEN,
  takenBy,
  withoutAnnotations,
} from './fenced-leases.ts';
import { leasePath, readLease, renewed, replacing, withAnnotations } from './leases.ts';
import { openWorld, until, without } from './world.ts';

const ADMISSION = '/apis/admissionregistration.k8s.io/v1';
const MINT = `${ADMISSION}/mutatingadmissionpolicybindings/kilit-fenced-lease-mint`;
const TWIN = `${ADMISSION}/validatingadmissionpolicybindings/kilit-fenced-lease`;

const at = useWorld(
  () => openWorld('fenced-install'),
  async (world) => {
    await createElection(world, { name: 'app' });
    for (let i = 0; i < 3; i += 1) await change(world, 'app', renewed);
  },
);

const attempt = (send: Parameters<typeof outcome>[1]['send']) =>
  outcome(at.world, { name: 'attempt', as: 'editor', send });
const takeover = replacing('app', (lease) => takenBy('b', lease));
/** Both policies are asked: the token is minted, and the one that is not due is refused. */
const bothAreBack = () =>
  until('both policies', async () => {
    const answer = await takeover(at.world, at.world.who.editor);
    const forged = await attempt(patching('app', { metadata: { annotations: { [TOKEN]: '7' } } }));
    const former = minted(await readLease(at.world, 'app')).token;
    return answer.status === 200 && minted(answer.body).token !== former && forged !== 'allowed';
  });

describe('fenced Leases', () => {
  test('get no new holder without a token while nothing mints, and renew all the same', async () => {
    const { kube, base } = at.world;
    {
      await using _ = await without(kube, MINT);
      await until('the minting to end', async () => (await attempt(takeover)) !== 'allowed');
      expect(await attempt(takeover)).toMatch(/Lease app: the fencing token must be \d+ for this grant, got "\d+"/);
      expect(await attempt(replacing('app', (lease) => withoutAnnotations(renewed(lease))))).toMatch(
        /must be \d+ as long as its holder does not change, got ""/,
      );
      expect(await attempt(replacing('app', renewed))).toBe('allowed');
      const itself = replacing('app', (lease) => {
        const taken = takenBy('b', lease);
        return withAnnotations(taken, { [TOKEN]: byRevision(lease, base), [TIME]: String(taken.spec.acquireTime) });
      });
      expect(await attempt(itself)).toBe('allowed');
    }
    await bothAreBack();
  });

  test('go on from what they find: a token ahead of the revision grows by one, nonsense counts for nothing', async () => {
    const { kube, base } = at.world;
    {
      await using _ = await without(kube, MINT, TWIN);
      await until('both policies to be away', async () => {
        const answer = await patching('app', { metadata: { annotations: { [TOKEN]: '7' } } })(
          at.world,
          at.world.who.editor,
        );
        return answer.status === 200 && minted(answer.body).token === '7';
      });
      await createElection(at.world, { name: 'restored', annotations: { [TOKEN]: '900000000000000000' } });
      await createElection(at.world, { name: 'nonsense', annotations: { [TOKEN]: '1e9', [TIME]: 'never' } });
      await createElection(at.world, { name: 'former', labels: { 'kilit.dev/fenced': 'yes' } });
    }
    await bothAreBack();
    const restored = await change(at.world, 'restored', (lease) => takenBy('b', lease));
    expect(minted(restored.after).token).toBe('900000000000000001');
    const nonsense = await change(at.world, 'nonsense', renewed);
    expect(minted(nonsense.after)).toEqual({
      token: byRevision(nonsense.before, base),
      time: nonsense.after.spec.acquireTime,
    });
    expect(minted((await change(at.world, 'former', (lease) => takenBy('b', lease))).after)).toEqual({});
  });

  test('are refused without the parameter, and every other Lease goes on', async () => {
    const { kube, who } = at.world;
    await createElection(at.world, { name: 'plain', labels: {} });
    await kube.must('PATCH', MINT, {
      body: { spec: { paramRef: { name: 'not-there', parameterNotFoundAction: 'Deny' } } },
    });
    try {
      await until('the refusal', async () => (await attempt(takeover)) !== 'allowed');
      expect(await attempt(takeover)).toMatch(/kilit-fenced-lease-mint.*no params found/);
      const renewal = await kube.ask('PUT', leasePath(at.world, 'plain'), {
        as: who.editor,
        body: renewed(await readLease(at.world, 'plain')),
      });
      expect(renewal.status).toBe(200);
    } finally {
      helm(...installArgs({ replicas: 0 }));
    }
    await bothAreBack();
  });

  test('have the cluster’s token base added', async () => {
    const { kube, base } = at.world;
    const path = `/api/v1/namespaces/${OPERATOR_NAMESPACE}`;
    const raised = base + 1000n;
    const setBase = async (to: bigint): Promise<number> => {
      const annotations = { 'kilit.dev/token-base': to === 0n ? null : String(to) };
      return (await kube.ask('PATCH', path, { body: { metadata: { annotations } } })).status;
    };
    expect(await setBase(raised)).toBe(200);
    try {
      await until('the base to count', async () => {
        const lease = await readLease(at.world, 'app');
        const answer = await takeover(at.world, at.world.who.editor);
        return minted(answer.body).token === byRevision(lease, raised);
      });
    } finally {
      await using _ = await without(kube, `${ADMISSION}/validatingadmissionpolicybindings/kilit-token-base`);
      await until('the base to be free', async () => (await setBase(base)) === 200);
    }
  });
});
