/**
 * An administrator breaks a grant, or has the lock handed over: by a plain annotation on the lock.
 *
 * opentofu/opentofu#2997 (locked for ever, and the lock cannot be forced open).
 */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openTestKube } from '../support/cluster.ts';
import { openTestCluster } from '../support/disturbed-cluster.ts';
import { FaultScene, figure } from '../support/fault-scene.ts';
import { type Life, violations } from '../support/history.ts';
import type { Kube } from '../support/kube.ts';
import { condition } from '../support/scene.ts';
import { waitFor } from '../support/wait.ts';

const cluster = await openTestCluster();
let kube: Kube;
let scene: FaultScene;
let me: string;

/** Long enough for a loaded machine, so that no grant ends but by what is asked here. */
const lockSpec = { leaseDurationSeconds: 15, takeoverDelaySeconds: 0 };

describe.skipIf(cluster.provider !== 'native').concurrent('an administrator', () => {
  beforeAll(async () => {
    kube = openTestKube();
    scene = await FaultScene.openFaults(kube, cluster, 'break');
    me = JSON.parse(await cluster.kubectl(['auth', 'whoami', '-o', 'json'])).status.userInfo.username;
  });
  afterAll(async () => {
    await scene?.[Symbol.asyncDispose]();
    kube?.close();
  });

  /** As a person would write it; the token is that of the present grant. */
  const ask = async (lock: string, what: 'break' | 'handover', life: Life): Promise<number> => {
    const request = JSON.stringify({ token: String(life.token), by: me, reason: 'hangs, and "nobody" knows why' });
    await waitFor('the status to know the grant', async () => {
      return (await scene.readLock(lock)).status?.fencingToken === String(life.token);
    });
    await scene.kubectl('annotate', 'dlock', lock, `kilit.dev/${what}=${request}`);
    return Date.now();
  };

  const events = async (lock: string): Promise<readonly string[]> => {
    const { items } = await kube.must('GET', `/apis/events.k8s.io/v1/namespaces/${scene.namespace}/events`);
    return (items as { reason: string; note: string; regarding: { name: string } }[])
      .filter(({ regarding }) => regarding.name === lock)
      .map(({ reason, note }) => `${reason}: ${note}`);
  };

  it('breaks the grant of a healthy holder: its token ends at once, and the next runs when it is stopped', async () => {
    const lock = 'healthy';
    const life = await scene.holderAndWaiters(lock, ['healthy-a', 'healthy-b'], { lockSpec });
    const askedAt = await ask(lock, 'break', life);
    await waitFor(
      'the lock to be held by nobody’s Pod',
      async () => (await scene.holder(lock))?.pod.startsWith('break-'),
      { everyMs: 20 },
    );
    figure('break asked → token moved', Date.now() - askedAt);
    const broken = await scene.readLease(lock);
    expect(BigInt(broken.metadata.annotations?.['kilit.dev/fencing-token'] ?? '')).toBeGreaterThan(life.token);
    expect(broken.spec?.leaseDurationSeconds).toBe(15);
    const shown = await waitFor('the status to say so', async () => {
      const read = await scene.readLock(lock);
      return condition(read, 'Held')?.reason === 'Broken' && read;
    });
    expect(shown.status?.holder).toBeUndefined();

    const next = await scene.runs(lock, 'healthy-b');
    const [former] = await scene.lives(lock, 'healthy-a');
    figure('break asked → healthy holder stopped', (former?.to ?? 0) - askedAt);
    figure('break asked → next program running, lease 15 s', next.from - askedAt);
    expect(violations(await scene.history(lock))).toEqual([]);
    const { status, metadata } = await scene.readLock(lock);
    expect(metadata.annotations ?? {}).not.toHaveProperty('kilit.dev/break');
    expect(status?.lastBreak).toMatchObject({
      by: me,
      reason: 'hangs, and "nobody" knows why',
      token: String(life.token),
    });
    expect((await scene.readLease(lock)).metadata.annotations).not.toHaveProperty('kilit.dev/broken-holder');
    await waitFor('the event', async () =>
      (await events(lock)).some((event) => event.startsWith(`Broken: ${me} broke the grant of Pod healthy-a`)),
    );
  });

  it('breaks the grant of a frozen holder: the next gets a greater token, by which a guard refuses the frozen one', async () => {
    const lock = 'frozen';
    const life = await scene.holderAndWaiters(lock, ['frozen-a', 'frozen-b'], {
      lockSpec,
      spec: { nodeName: scene.node.name },
    });
    await scene.signalAll('frozen-a', 'SIGSTOP');
    const askedAt = await ask(lock, 'break', life);
    const next = await scene.runs(lock, 'frozen-b');
    figure('break of a frozen holder asked → next program running, lease 15 s', next.from - askedAt);
    expect(next.token).toBeGreaterThan(life.token);
    const { transitions } = (await scene.readLock(lock)).status ?? {};
    expect(transitions).toBe(3);
    await scene.signalAll('frozen-a', 'SIGCONT');
    expect(violations(await scene.history(lock), { mayWriteLate: 'frozen-a' })).toEqual([]);
  });

  it('has the lock handed over: the holder stops and goes to the end of the queue', async () => {
    const lock = 'handed';
    const life = await scene.holderAndWaiters(lock, ['handed-a', 'handed-b'], { lockSpec });
    const askedAt = await ask(lock, 'handover', life);
    const next = await scene.runs(lock, 'handed-b');
    figure('handover asked → next program running', next.from - askedAt);
    const [former = life] = await scene.lives(lock, 'handed-a');
    figure('handover: no program ran', next.from - former.to);
    await scene.waits(lock, ['handed-a']);
    const { status, metadata } = await scene.readLock(lock);
    expect(metadata.annotations ?? {}).not.toHaveProperty('kilit.dev/handover');
    expect(status?.lastHandover).toMatchObject({ by: me, token: String(life.token) });
    expect(violations(await scene.history(lock))).toEqual([]);
    await waitFor('the event', async () =>
      (await events(lock)).some((event) => event.startsWith(`HandedOver: ${me} asked Pod handed-a`)),
    );
  });

  it('has the lock handed over by a program that ignores SIGTERM: it is killed long before its grace period ends', async () => {
    const lock = 'deaf';
    const life = await scene.holderAndWaiters(lock, ['deaf-a', 'deaf-b'], {
      lockSpec,
      deaf: true,
      spec: { terminationGracePeriodSeconds: 60 },
    });
    await ask(lock, 'handover', life);
    await scene.runs(lock, 'deaf-b');
    const lines = (await scene.history(lock)).filter((line) => line.life === life.life);
    const told = lines.find(({ did }) => did === 'got SIGTERM')?.at ?? Number.NaN;
    const lived = (lines.at(-1)?.at ?? Number.NaN) - told;
    figure('SIGTERM of a yielding program that ignores it → dead, grace period 60 s', lived);
    expect(lived).toBeLessThan(30_000);
    expect(violations(await scene.history(lock))).toEqual([]);
  });
});
