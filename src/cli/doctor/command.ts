import type { Action } from '../command.ts';
import { CLUSTER_OPTIONS, withCluster } from '../connect.ts';
import { Exit } from '../failure.ts';
import { MARK_OPTION, MARKS_SQL, marksOf } from '../mark.ts';
import { OPERATOR_NAMESPACE_OPTION, operatorNamespace } from '../operator-namespace.ts';
import { valueOf } from '../options.ts';
import { printData } from '../output.ts';
import { diagnose } from './checks/index.ts';
import { worst } from './finding.ts';
import { gather } from './gather.ts';
import { renderFindings } from './render.ts';

export const doctor: Action = {
  kind: 'action',
  summary: 'Check the installation, the nodes, the Pods and the tokens, and say what to do',
  help: `Checks that kilit works here: API server, policies and whether they are enforced (a dry run), operator, nodes, labelled Pods,
leases, tokens. Each finding says what it means and what to do. Reads only; what these rights do not let it read is a warning. Takes some
seconds: it watches the operator renew its own Lease.

Guards know tokens that the cluster may have forgotten in an etcd restore: give their marks by --mark. Those of PostgreSQL:
  kilit doctor $(${MARKS_SQL})

Exit code 1 if a check failed; warnings alone leave it 0.`,
  options: [
    { name: 'namespace', short: 'n', value: 'NS', summary: 'locks and Pods of this namespace only' },
    MARK_OPTION,
    { name: 'output', short: 'o', value: 'FORMAT', choices: ['json', 'yaml'], summary: 'another format' },
    OPERATOR_NAMESPACE_OPTION,
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    'kilit doctor',
    'kilit doctor -n shop --mark shop/billing=4720',
    'kilit doctor -o json | jq \'.findings[] | select(.result != "ok")\'',
  ],
  run: (input, io) => {
    const marks = marksOf(input);
    return withCluster(input, io, async (cluster) => {
      const format = valueOf(input, 'output');
      const isData = format === 'json' || format === 'yaml';
      if (!isData) io.err('Looking at the cluster, and watching the operator renew its Lease …\n');
      const facts = await gather(cluster, io, {
        namespace: valueOf(input, 'namespace'),
        operatorNamespace: () => operatorNamespace(cluster, input),
        marks,
      });
      if (facts.namespace !== undefined && valueOf(input, 'namespace') === undefined) {
        io.err(`Only namespace '${facts.namespace}' is looked at: these rights do not let list the locks of others.\n`);
      }
      const findings = diagnose(facts);
      const result = worst(findings);
      if (isData) await printData(io, format, { result, namespace: facts.namespace ?? null, findings });
      else io.out(renderFindings(findings));
      return result === 'fail' ? Exit.failed : Exit.ok;
    });
  },
};
