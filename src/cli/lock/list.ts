import type { DistributedLock } from '../../api/generated/distributedlock.ts';
import type { Action } from '../command.ts';
import { CLUSTER_OPTIONS, list, NAMESPACE_OPTION, withCluster } from '../connect.ts';
import { Exit } from '../failure.ts';
import { isGiven, valueOf } from '../options.ts';
import { printData } from '../output.ts';
import { renderRows, rowOf } from './row.ts';

export const listLocks: Action = {
  kind: 'action',
  summary: 'Locks with holder, token, since when, waiters and who is next',
  help: `Lists the locks of a namespace, as the operator last saw them. The token is that of the present or last grant; NEXT is the
waiter that gets the lock when it is free. Needs the right to list distributedlocks.kilit.dev.`,
  options: [
    NAMESPACE_OPTION,
    { name: 'all-namespaces', short: 'A', summary: 'locks of all namespaces' },
    { name: 'output', short: 'o', value: 'FORMAT', choices: ['wide', 'json', 'yaml'], summary: 'another format' },
    ...CLUSTER_OPTIONS,
  ],
  examples: ['kilit list', 'kilit list -A -o wide', "kilit list -n shop -o json | jq '.[] | select(.waiters > 0)'"],
  run: (input, io) =>
    withCluster(input, io, async (cluster) => {
      const allNamespaces = isGiven(input, 'all-namespaces');
      const namespace = allNamespaces ? undefined : cluster.namespace;
      const locks = await list<DistributedLock>(cluster, 'distributedlocks', { namespace });
      const rows = locks.map(rowOf);
      const format = valueOf(input, 'output');
      if (format === 'json' || format === 'yaml') await printData(io, format, rows);
      else if (rows.length > 0) io.out(renderRows(rows, { allNamespaces, wide: format === 'wide' }, io.now()));
      else io.err(allNamespaces ? 'There are no locks.\n' : `There are no locks in namespace '${namespace}'.\n`);
      return Exit.ok;
    }),
};
