/** The tables of the policy tests: what is refused, in which words, and what is let through. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Answer, Identity } from '../../support/kube.ts';
import type { Who, World } from './world.ts';

/** One write that must be refused, or let through. Always a dry run: an attack that succeeds does no harm to the next. */
export interface Attempt {
  readonly name: string;
  readonly as: Who;
  readonly send: (world: World, as: Identity) => Promise<Answer>;
}

/** An attempt that must be refused, with this text. */
export interface Attack extends Attempt {
  readonly refused: RegExp;
}

/** Name and answer of an attempt, for `expect`: the text of a refusal, or `allowed`. */
export async function outcome(world: World, attempt: Attempt): Promise<string> {
  const answer = await attempt.send(world, world.who[attempt.as]);
  return answer.status >= 200 && answer.status < 300 ? 'allowed' : `${answer.status}: ${answer.body.message ?? ''}`;
}

/** A world for the tests of a file: opened and prepared before the first, closed after the last. */
export function useWorld(
  open: () => Promise<World>,
  prepare: (world: World) => Promise<unknown> = () => Promise.resolve(),
): { readonly world: World } {
  let world: World | undefined;
  beforeAll(async () => {
    world = await open();
    await prepare(world);
  });
  afterAll(() => world?.[Symbol.asyncDispose]());
  return {
    get world() {
      if (world === undefined) throw new Error('The world is open in tests only');
      return world;
    },
  };
}

/** One test for each attempt. */
export function tryAll(
  at: { readonly world: World },
  table: { readonly attacks: readonly Attack[]; readonly legitimate?: readonly Attempt[] },
): void {
  test.each(table.attacks)('refuses: $name', async ({ refused, ...attempt }) => {
    expect(await outcome(at.world, attempt)).toMatch(refused);
  });
  test.each(table.legitimate ?? [])('allows: $name', async (attempt) => {
    expect(await outcome(at.world, attempt)).toBe('allowed');
  });
}
