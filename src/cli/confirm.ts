import { Exit, Failure } from './failure.ts';
import type { Io } from './io.ts';
import { type Input, isGiven, type Option } from './options.ts';

export const YES_OPTION: Option = { name: 'yes', short: 'y', summary: 'do not ask; needed without a terminal' };

/** Asks before something that cannot be taken back. @throws Failure unless the answer is yes, or `--yes` was given. */
export async function confirm(input: Input, io: Io, what: string): Promise<void> {
  if (isGiven(input, 'yes')) return;
  if (io.ask === undefined) {
    throw new Failure(`${what} needs a yes and there is no terminal to ask at; nothing was done. Give --yes.`, {
      exit: Exit.usage,
    });
  }
  const answer = await io.ask(`${what}? Type yes to go on: `);
  if (answer.trim() !== 'yes') throw new Failure('Nothing was done.');
}
