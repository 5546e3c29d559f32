/** Which token is minted on the Leases of other people's leader elections, on the real API server. */
import { describe, expect, test } from 'vitest';
import type { Identity } from '../../support/kube.ts';
import { useWorld } from './attempts.ts';
import {
  anElection,
  byRevision,
  change,
  createElection,
  FENCED,
  minted,
  TIME,
  TOKEN,
  takenBy,
  withoutAnnotations,
} from './fenced-leases.ts';
import {
  aLease,
  type Lease,
  leasePath,
  readLease,
  released,
  renewed,
  toHolder,
  withMetadata,
  withSpec,
  write,
} from './leases.ts';
import { openWorld } from './world.ts';

const at = useWorld(() => openWorld('mint'));

/** A fenced Lease of this name with a holder that has a token. */
async function held(name: string): Promise<Lease> {
  await createElection(at.world, { name });
  return (await change(at.world, name, renewed)).after;
}

const patch = async (name: string, body: unknown, as: Identity = at.world.who.editor): Promise<Lease> =>
  (await at.world.kube.must('PATCH', leasePath(at.world, name), { as, body })) as unknown as Lease;

describe('the token of a fenced Lease', () => {
  test('is "0" at a creation that is held already, since a creation replaces no revision', async () => {
    expect(minted(await createElection(at.world, { name: 'created' }))).toEqual({ token: '0', time: '' });
  });

  test('is minted by the first renewal after that: the revision that it replaces, plus the base', async () => {
    await createElection(at.world, { name: 'first' });
    const { before, after } = await change(at.world, 'first', renewed);
    expect(minted(after)).toEqual({
      token: byRevision(before, at.world.base),
      time: after.spec.acquireTime,
    });
  });

  test('is "0" as long as nobody holds it', async () => {
    await createElection(at.world, { name: 'free', holder: '' });
    expect(minted((await change(at.world, 'free', renewed)).after)).toEqual({ token: '0', time: '' });
  });

  test('stays at a renewal and at a release', async () => {
    const lease = await held('stays');
    expect(minted((await change(at.world, 'stays', renewed)).after)).toEqual(minted(lease));
    expect(minted((await change(at.world, 'stays', released)).after)).toEqual(minted(lease));
  });

  test('is minted for another holder', async () => {
    await held('taken');
    const { before, after } = await change(at.world, 'taken', (lease) => takenBy('b', lease));
    expect(minted(after)).toEqual({
      token: byRevision(before, at.world.base),
      time: after.spec.acquireTime,
    });
  });

  test('is minted for the former holder too, after it released', async () => {
    const former = await held('again');
    await change(at.world, 'again', released);
    const { before, after } = await change(at.world, 'again', (lease) => withSpec(lease, { holderIdentity: 'a' }));
    expect(minted(after).token).toBe(byRevision(before, at.world.base));
    expect(BigInt(minted(after).token ?? '')).toBeGreaterThan(BigInt(minted(former).token ?? ''));
  });

  test('is minted when the same holder acquires anew: its former process may still run', async () => {
    await held('same');
    const { before, after } = await change(at.world, 'same', (lease) => takenBy('a', lease));
    expect(minted(after)).toEqual({
      token: byRevision(before, at.world.base),
      time: after.spec.acquireTime,
    });
  });

  test('is minted when acquireTime goes, and then is nobody’s', async () => {
    await held('timeless');
    const { before, after } = await change(at.world, 'timeless', (l) =>
      withSpec(renewed(l), { acquireTime: undefined }),
    );
    expect(minted(after)).toEqual({ token: byRevision(before, at.world.base), time: '' });
  });

  test('comes back when a write leaves it out', async () => {
    const lease = await held('left-out');
    const { after } = await change(at.world, 'left-out', (l) => withoutAnnotations(renewed(l)));
    expect(minted(after)).toEqual(minted(lease));
    expect(minted(await patch('left-out', { metadata: { annotations: null } }))).toEqual(minted(lease));
    expect(minted(await patch('left-out', { metadata: { annotations: { [TOKEN]: null, [TIME]: null } } }))).toEqual(
      minted(lease),
    );
  });

  test('is kept through the renewals of a client that only ever applies its own fields', async () => {
    const apply = async (lease: Lease): Promise<Lease> =>
      (await at.world.kube.must('PATCH', `${leasePath(at.world, 'applied')}?fieldManager=kubert&force=true`, {
        as: at.world.who.editor,
        patch: 'apply',
        body: lease,
      })) as unknown as Lease;
    const mine = anElection({ name: 'applied' });
    expect(minted(await apply(mine)).token).toBe('0');
    const first = await apply(renewed(mine));
    expect(Number(minted(first).token)).toBeGreaterThan(0);
    expect(minted(await apply(renewed(mine)))).toEqual(minted(first));
    const other = await apply(takenBy('b', mine));
    expect(BigInt(minted(other).token ?? '')).toBeGreaterThan(BigInt(minted(first).token ?? ''));
    expect(minted(await apply(renewed(withSpec(mine, other.spec))))).toEqual(minted(other));
  });

  test('is minted when a held Lease gets the label, and what stood there before counts for nothing', async () => {
    await createElection(at.world, { name: 'late', labels: {}, annotations: { [TOKEN]: '999999999999999999' } });
    const before = await readLease(at.world, 'late');
    const after = await patch('late', { metadata: { labels: FENCED } });
    expect(minted(after)).toEqual({
      token: byRevision(before, at.world.base),
      time: after.spec.acquireTime,
    });
  });

  test('is "0" when a free Lease gets the label, whatever stood there before', async () => {
    const annotations = { [TOKEN]: '12345', [TIME]: '2026-01-01T00:00:00Z' };
    await createElection(at.world, { name: 'late-free', labels: {}, holder: '', annotations });
    expect(minted(await patch('late-free', { metadata: { labels: FENCED } }))).toEqual({ token: '0', time: '' });
  });

  test('strictly grows over deletions and re-creations', async () => {
    const tokens: bigint[] = [];
    for (let round = 0; round < 5; round += 1) {
      tokens.push(BigInt(minted(await held('reborn')).token ?? ''));
      const { after } = await change(at.world, 'reborn', (lease) => takenBy('b', lease));
      tokens.push(BigInt(minted(after).token ?? ''));
      await at.world.kube.must('DELETE', leasePath(at.world, 'reborn'), { as: at.world.who.editor });
    }
    expect(tokens).toEqual([...new Set(tokens)].toSorted((a, b) => (a < b ? -1 : 1)));
  });

  test('strictly grows when many take it at once, without stating what they replace', async () => {
    await held('contended');
    const writes = Array.from({ length: 40 }, (_, i) => patch('contended', { spec: { holderIdentity: `c${i}` } }));
    const answers = await Promise.allSettled(writes);
    const leases = answers.flatMap((answer) => (answer.status === 'fulfilled' ? [answer.value] : []));
    expect(leases.length).toBeGreaterThan(5);
    const inOrder = leases.toSorted((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion));
    const tokens = inOrder.map((lease) => BigInt(minted(lease).token ?? ''));
    for (const [i, token] of tokens.entries()) {
      expect(token - at.world.base).toBeLessThan(BigInt(inOrder[i]?.metadata.resourceVersion ?? ''));
      if (i > 0) expect(token).toBeGreaterThan(tokens[i - 1] ?? 0n);
    }
  });

  test('is not minted on a Lease without the label', async () => {
    await createElection(at.world, { name: 'plain', labels: {} });
    expect(minted((await change(at.world, 'plain', (lease) => takenBy('b', lease))).after)).toEqual({});
  });

  test('is left to its own policy on the Lease of a lock, labelled or not', async () => {
    const { operator } = at.world.who;
    const lease = withMetadata(aLease('fenced'), { labels: { ...aLease('fenced').metadata.labels, ...FENCED } });
    await at.world.kube.must('POST', leasePath(at.world), { as: operator, body: lease });
    const free = await readLease(at.world, 'kilit.fenced');
    const granted = await write(at.world, operator, toHolder(free, at.world));
    expect(minted(free)).toEqual({ token: '0' });
    expect(minted(granted)).toEqual({ token: byRevision(free, at.world.base) });
  });
});
