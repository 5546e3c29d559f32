import type { Action } from '../command.ts';
import { YES_OPTION } from '../confirm.ts';
import { CLUSTER_OPTIONS, NAMESPACE_OPTION, withCluster } from '../connect.ts';
import type { Option } from '../options.ts';
import { askOperator } from './ask.ts';

const OPTIONS: readonly Option[] = [
  {
    name: 'reason',
    value: 'TEXT',
    required: true,
    summary: 'why, at most 256 characters; it is recorded with your name',
  },
  YES_OPTION,
  { name: 'wait', summary: 'wait until it is done and tell each step' },
  { name: 'timeout', value: 'SECONDS', summary: 'of --wait; default: what the terms of the grant allow, and 60' },
  NAMESPACE_OPTION,
  ...CLUSTER_OPTIONS,
];

export const breakLock: Action = {
  kind: 'action',
  summary: 'Take a lock away from a holder that is stuck, frozen or lost',
  help: `Ends the present grant without the holder's consent: the operator moves the token at once, so that guards refuse the
holder, stops its programs, and frees the lock when they must be dead (lease and takeover delay at most). What cannot check a token is
not protected from a frozen holder. Only the grant that is shown is broken: a request that comes late is dropped.

Needs the verb 'break' on distributedlocks.kilit.dev, and 'patch' on the lock. Name, time and reason are recorded in its status.`,
  operands: ['LOCK'],
  options: OPTIONS,
  examples: [
    "kilit break billing -n shop --reason 'node n7 is frozen, INC-1234'",
    "kilit break billing -n shop --reason 'node n7 is frozen, INC-1234' --yes --wait",
  ],
  run: (input, io) =>
    withCluster(input, io, (cluster) =>
      askOperator(cluster, input, io, {
        kind: 'break',
        consequences: ({ holder, terms }) =>
          `The token moves at once, and guards then refuse Pod ${holder?.name}. Its programs are stopped, in the middle of their work; the lock is free at the latest after ${terms.leaseDurationSeconds + terms.takeoverDelaySeconds} s.`,
      }),
    ),
};

export const handover: Action = {
  kind: 'action',
  summary: 'Ask the holder to give a lock to the next waiter',
  help: `Asks the holder to yield, as the operator does in a rolling update. In mode gate its programs are restarted behind the gate
and its Pod goes to the end of the queue; in mode standby the program is told first and may finish. A holder that is frozen cannot answer:
break its grant instead. Only the grant that is shown is meant: a request that comes late is dropped.

Needs the verb 'break' on distributedlocks.kilit.dev, and 'patch' on the lock. Name, time and reason are recorded in its status.`,
  operands: ['LOCK'],
  options: OPTIONS,
  examples: [
    "kilit handover billing -n shop --reason 'move it off n7'",
    "kilit handover billing -n shop --reason 'move it off n7' --yes --wait",
  ],
  run: (input, io) =>
    withCluster(input, io, (cluster) =>
      askOperator(cluster, input, io, {
        kind: 'handover',
        consequences: ({ holder }) =>
          `Pod ${holder?.name} is asked to give the lock up: its programs are restarted (mode gate) or told (mode standby), and it goes to the end of the queue.`,
      }),
    ),
};
