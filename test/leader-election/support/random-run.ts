import { expect } from 'vitest';
import { type Contender, createContender } from './contender.ts';
import { createFakeApiServer, type Fate, LOST, PROMPT } from './fake-api-server.ts';
import { createVirtualTime, seededRandom } from './virtual-time.ts';

/** `tight` leaves no room: the shortest lease that the settings allow, clocks as far apart as allowed, eager waiters. */
const PROFILES = {
  roomy: {
    timings: [
      { leaseDurationSeconds: 15, renewDeadlineSeconds: 10, retryPeriodSeconds: 2 },
      { leaseDurationSeconds: 11, renewDeadlineSeconds: 10, retryPeriodSeconds: 3 },
      { leaseDurationSeconds: 30, renewDeadlineSeconds: 20, retryPeriodSeconds: 5 },
    ],
    rates: [0.955, 0.98, 1, 1.02, 1.05],
  },
  tight: {
    timings: [
      { leaseDurationSeconds: 11, renewDeadlineSeconds: 10, retryPeriodSeconds: 4 },
      { leaseDurationSeconds: 11, renewDeadlineSeconds: 10, retryPeriodSeconds: 0.25 },
    ],
    // The fastest over the slowest: 1.0995.
    rates: [0.955, 1.05],
  },
};

export interface RunReport {
  readonly terms: number;
  readonly losses: number;
  readonly releases: number;
  readonly requests: number;
  readonly leaderSeconds: number;
}

/**
 * Some contenders, `faultySeconds` of random faults, then quiet.
 *
 * Checked after every event: at most one `isLeader()`, and it is the one whom the API server names; no release while the
 * releaser works; a term that has lapsed does not come back; after the quiet time somebody leads.
 */
export async function randomRun(seed: number, { faultySeconds = 240, quietSeconds = 60 } = {}): Promise<RunReport> {
  const random = seededRandom(seed);
  const between = (low: number, high: number) => low + (high - low) * random();
  const pick = <T>(choices: readonly T[]): T => choices[Math.floor(random() * choices.length)] as T;
  const time = createVirtualTime();
  const partitioned = new Set<string>();
  const weathers = new Map<string, 'calm' | 'lossy' | 'slow'>();
  let releases = 0;
  const earlyReleases: string[] = [];

  function fateOf(name: string): Fate {
    if (partitioned.has(name)) return random() < 0.5 ? LOST : { ...PROMPT, replySeconds: Number.POSITIVE_INFINITY };
    const weather = weathers.get(name) ?? 'calm';
    if (weather === 'calm') return { requestSeconds: between(0.001, 0.05), replySeconds: between(0.001, 0.05) };
    if (weather === 'slow') return { requestSeconds: between(0, 2), replySeconds: between(0, 2) };
    if (random() < 0.15) return LOST;
    return {
      // Some requests arrive long after their sender gave up.
      requestSeconds: random() < 0.1 ? between(1, 20) : between(0, 0.5),
      replySeconds: random() < 0.2 ? Number.POSITIVE_INFINITY : between(0, 0.5),
      isRefused: random() < 0.1,
    };
  }

  const contenders: Contender[] = [];
  const server = createFakeApiServer(time, ({ writer, record }) => {
    if (record.holderIdentity !== '') return;
    releases += 1;
    // Checked later: what is thrown here would be an answer of the API server.
    if (contenders.some((contender) => contender.name === writer && contender.isWorking())) earlyReleases.push(writer);
  });
  const profile = PROFILES[random() < 0.5 ? 'roomy' : 'tight'];
  const count = 2 + Math.floor(random() * 3);
  for (let index = 0; index < count; index += 1) {
    const name = `contender-${index}`;
    contenders.push(
      createContender(time, server, {
        name,
        ...pick(profile.timings),
        rate: pick(profile.rates),
        random,
        fate: () => fateOf(name),
        drainSeconds: () => (random() < 0.5 ? 0 : between(0, 8)),
        stopTimeoutSeconds: 1000,
      }),
    );
  }

  let leader: string | undefined;
  let leaderSince = 0;
  let leaderSeconds = 0;
  const lapsed = new Set<string>();
  function check(): void {
    if (earlyReleases.length > 0) throw new Error(`${earlyReleases.join(', ')} released while working`);
    for (const contender of contenders) {
      const term = `${contender.name} in its term ${contender.terms()}`;
      if (!contender.elector.isLeader()) {
        if (contender.isWorking()) lapsed.add(term);
      } else if (lapsed.has(term)) throw new Error(`${term} leads again after a lapse`);
    }
    const leaders = contenders.filter(({ elector }) => elector.isLeader()).map(({ name }) => name);
    if (leaders.length > 1) throw new Error(`${leaders.join(' and ')} lead at ${time.now()} s`);
    const holder = server.lease()?.record.holderIdentity;
    if (leaders[0] !== undefined && holder !== leaders[0]) throw new Error(`${leaders[0]} leads, '${holder}' holds`);
    if (leaders[0] === leader) return;
    if (leader !== undefined) leaderSeconds += time.now() - leaderSince;
    leader = leaders[0];
    leaderSince = time.now();
  }

  function scheduleFault(): void {
    if (time.now() > faultySeconds) return;
    const victim =
      random() < 0.6 ? (contenders.find(({ elector }) => elector.isLeader()) ?? pick(contenders)) : pick(contenders);
    const fault = random();
    if (fault < 0.25) victim.machine.pause(random() < 0.5 ? 'freeze' : 'suspend', between(0, 40));
    else if (fault < 0.45) {
      partitioned.add(victim.name);
      time.after(between(0, 40), () => partitioned.delete(victim.name));
    } else if (fault < 0.6) weathers.set(victim.name, pick(['calm', 'lossy', 'slow', 'slow']));
    else if (fault < 0.7) server.label();
    else if (fault < 0.8) victim.finishWork();
    else if (fault < 0.9) victim.machine.stepWallClock(between(-300, 300));
    else {
      victim.machine.deliver(() => victim.stop());
      time.after(between(1, 60), () => victim.machine.deliver(() => victim.start()));
    }
    time.after(between(0, 15), scheduleFault);
  }

  for (const contender of contenders) time.after(between(0, 5), () => contender.start());
  time.after(between(5, 20), scheduleFault);
  // Pauses and partitions that began last may go on for 40 s, standing again for 60 s.
  await time.runUntil(faultySeconds, check);
  weathers.clear();
  await time.runUntil(faultySeconds + 75, check);
  for (const contender of contenders) contender.start();
  await time.runUntil(faultySeconds + 75 + quietSeconds, check);

  expect(leader, 'nobody leads after the faults have ended').toBeDefined();
  return {
    terms: contenders.reduce((sum, contender) => sum + contender.terms(), 0),
    losses: contenders.flatMap(({ outcomes }) => outcomes).filter(isLoss).length,
    releases,
    requests: server.requests(),
    leaderSeconds,
  };
}

const isLoss = (outcome: Contender['outcomes'][number]) => 'kind' in outcome && outcome.kind === 'lost';
