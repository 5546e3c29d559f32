import { describe, expect, it } from 'vitest';
import { HELP, parseDemo } from '../../tools/demo/cli.ts';

const terminal = { env: {}, isTerminal: true };

describe('the command line of the demo', () => {
  it('takes the cluster down and draws a live table by default', () => {
    expect(parseDemo([], terminal)).toEqual({ help: false, name: 'demo', keep: false, plain: false });
  });

  it('reads every option', () => {
    expect(parseDemo(['--keep', '--name', 'second', '--plain', '-h'], terminal)).toEqual({
      help: true,
      name: 'second',
      keep: true,
      plain: true,
    });
  });

  it.each([
    { when: 'the output is no terminal', at: { env: {}, isTerminal: false } },
    { when: 'CI is true', at: { env: { CI: 'true' }, isTerminal: true } },
    { when: 'the terminal cannot move its cursor', at: { env: { TERM: 'dumb' }, isTerminal: true } },
  ])('is plain when $when', ({ at }) => {
    expect(parseDemo([], at).plain).toBe(true);
  });

  it.each(['', 'false'])("is not plain when CI is '%s'", (CI) => {
    expect(parseDemo([], { env: { CI }, isTerminal: true }).plain).toBe(false);
  });

  it('names all faults at once, and the help', () => {
    expect(() => parseDemo(['up', '--name', '../x'], terminal)).toThrow(/'up'.*'\.\.\/x'.*--help/);
  });

  it('refuses an option that it does not know', () => {
    expect(() => parseDemo(['--fast'], terminal)).toThrow('--fast');
  });

  it('has examples in its help', () => {
    expect(HELP).toContain('npm run demo -- --plain');
  });
});
