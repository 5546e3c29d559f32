import { base } from './base/commands.ts';
import type { Group } from './command.ts';
import { doctor } from './doctor/command.ts';
import { guardPostgres, INSTALL } from './guard-postgres.ts';
import { describe } from './lock/describe.ts';
import { listLocks } from './lock/list.ts';
import { breakLock, handover } from './request/commands.ts';

/** All commands. Each is a value in a file of its own. */
export const root: Group = {
  kind: 'group',
  summary: 'Named locks for Kubernetes with a fencing token',
  examples: [
    'kilit list -A',
    'kilit describe billing -n shop',
    "kilit break billing -n shop --reason 'node n7 is frozen' --wait",
    'kilit doctor',
    INSTALL,
  ],
  commands: {
    list: listLocks,
    describe,
    break: breakLock,
    handover,
    base,
    doctor,
    guard: {
      kind: 'group',
      summary: 'Let a resource refuse writes with an old fencing token',
      examples: ['kilit guard postgres --help'],
      commands: { postgres: guardPostgres },
    },
  },
};
