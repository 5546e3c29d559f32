import { type Contender, type ContenderOptions, createContender } from './contender.ts';
import { createFakeApiServer, type FakeApiServer, type Fate, PROMPT, type Verb } from './fake-api-server.ts';
import { createVirtualTime, type VirtualTime } from './virtual-time.ts';

/** One Lease and whoever stands for it, on a network that a test shapes. */
export interface World {
  readonly time: VirtualTime;
  readonly server: FakeApiServer;
  readonly contender: (name: string, options?: Partial<ContenderOptions>) => Contender;
  /** From now on requests of `name` fare like this; `undefined`: promptly again. */
  readonly network: (name: string, fate: Fate | ((verb: Verb) => Fate) | undefined) => void;
  /** Lets time pass, event by event, until the condition holds; throws after `limitSeconds`. Returns the seconds it took. */
  readonly until: (condition: () => boolean, limitSeconds?: number) => Promise<number>;
  /** Lets time pass. */
  readonly pass: (seconds: number) => Promise<void>;
}

export function aWorld(): World {
  const time = createVirtualTime();
  const server = createFakeApiServer(time);
  const fates = new Map<string, (verb: Verb) => Fate>();

  return {
    time,
    server,
    contender(name, options) {
      const fate = (verb: Verb) => fates.get(name)?.(verb) ?? PROMPT;
      return createContender(time, server, { name, fate, ...options });
    },
    network(name, fate) {
      if (fate === undefined) fates.delete(name);
      else fates.set(name, typeof fate === 'function' ? fate : () => fate);
    },
    async until(condition, limitSeconds = 120) {
      const startedAt = time.now();
      await time.runUntil(startedAt);
      while (!condition()) {
        if (!(await time.step(startedAt + limitSeconds))) throw new Error(`Not within ${limitSeconds} s`);
      }
      return time.now() - startedAt;
    },
    pass: (seconds) => time.runUntil(time.now() + seconds),
  };
}
