/** The command line of `npm run demo`. Pure: arguments in, options or a fault out. */
import { parseArgs } from 'node:util';
import { nameFault } from '../cluster/validate.ts';

export interface DemoOptions {
  readonly help: boolean;
  readonly name: string;
  readonly keep: boolean;
  /** Lines instead of a table that is redrawn in place. */
  readonly plain: boolean;
}

export const DEFAULT_NAME = 'demo';

export const HELP = `Shows on a real Kubernetes cluster who holds a lock, what happens when programs, Pods and the operator die,
and how a database refuses a holder that was paused for too long.

  npm run demo                    about three minutes; the first time ever about 12 more, to build Kubernetes

It needs Linux and root, or a Docker or Podman engine and kind. It brings up a cluster of its own, touches no other,
and takes it down at the end; after a failure it leaves it up and says where the logs are.

Options
  --keep          leave the cluster up at the end, to play with
  --name NAME     the cluster's name (default ${DEFAULT_NAME})
  --plain         plain lines instead of a live table; so also when CI is set or the output is not a terminal
  -h, --help      this text

Exit code: 0 if every act showed what it claims, 1 if not, 2 for a wrong command line, 130 after Ctrl-C.

Examples
  npm run demo -- --keep
  npm run demo -- --plain | tee demo.log
  npm run demo -- --name second
`;

const OPTIONS = {
  name: { type: 'string' },
  keep: { type: 'boolean' },
  plain: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** Throws with all faults in one message. */
export function parseDemo(
  args: readonly string[],
  at: { readonly env: Readonly<Record<string, string | undefined>>; readonly isTerminal: boolean },
): DemoOptions {
  const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  const name = values.name ?? DEFAULT_NAME;
  const faults = [
    positionals.length > 0 ? `unknown argument '${positionals.join(' ')}'` : undefined,
    nameFault(name),
  ].filter((fault) => fault !== undefined);
  if (faults.length > 0) throw new Error(`${faults.join('; ')}. See: npm run demo -- --help`);
  return {
    help: values.help === true,
    name,
    keep: values.keep === true,
    plain: values.plain === true || !at.isTerminal || isSet(at.env['CI']) || at.env['TERM'] === 'dumb',
  };
}

const isSet = (value: string | undefined): boolean => value !== undefined && value !== '' && value !== 'false';
