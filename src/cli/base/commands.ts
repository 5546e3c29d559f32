import { TOKEN_BASE_ANNOTATION } from '../../api/names.ts';
import { parseTokenBase } from '../../core/token.ts';
import { objectPath } from '../../kube/paths.ts';
import type { Group } from '../command.ts';
import { confirm, YES_OPTION } from '../confirm.ts';
import { CLUSTER_OPTIONS, type Cluster, withCluster } from '../connect.ts';
import { Exit, Failure } from '../failure.ts';
import type { Io } from '../io.ts';
import { MARK_OPTION, MARKS_SQL, marksOf } from '../mark.ts';
import { OPERATOR_NAMESPACE_OPTION, operatorNamespace } from '../operator-namespace.ts';
import { type Input, isGiven, type Option, valueOf } from '../options.ts';
import { printData } from '../output.ts';
import { type BaseFacts, notAbove, proposedBase, raiseFault } from './raise-to.ts';
import { baseOf, type RawNamespace, readBaseFacts, readNamespace } from './read.ts';

const OPTIONS: readonly Option[] = [OPERATOR_NAMESPACE_OPTION, ...CLUSTER_OPTIONS];

export const base: Group = {
  kind: 'group',
  summary: 'The token base of the cluster: what is added to its revision in every token',
  examples: ['kilit base show', 'kilit base raise --above-all'],
  commands: {
    show: {
      kind: 'action',
      summary: 'Show the base, the revision, and the greatest token that is known',
      help: `Shows the token base (annotation ${TOKEN_BASE_ANNOTATION} of the operator's Namespace), the API server's revision, the token that
a grant would carry now, and the greatest token of all Leases, locks and given marks. When that is greater, the revision fell behind: this
cluster was restored from a backup, or moved.`,
      options: [
        MARK_OPTION,
        { name: 'output', short: 'o', value: 'FORMAT', choices: ['json', 'yaml'], summary: 'another format' },
        ...OPTIONS,
      ],
      examples: ['kilit base show', 'kilit base show --mark shop/billing=4720'],
      run: (input, io) => withCluster(input, io, (cluster) => show(cluster, input, io)),
    },
    raise: {
      kind: 'action',
      summary: 'Raise the base, after an etcd restore or a move to another cluster',
      help: `Raises the token base, so that tokens go on above every one that was ever issued. Needed after a restore of etcd without
--bump-revision and after a move to a new cluster, before anything is granted. It only grows and cannot be taken back.

--above-all proposes a round number above every token that this cluster knows. It does not know tokens issued after the backup was
made: it leaves room for 10^9 of them, and takes the marks of your guards by --mark. To read those of PostgreSQL:
  ${MARKS_SQL}

Needs 'patch' on the operator's Namespace. Restart the operator afterwards: its watches expect revisions to grow.`,
      operands: ['[TO]'],
      options: [{ name: 'above-all', summary: 'above every token that is known' }, MARK_OPTION, YES_OPTION, ...OPTIONS],
      examples: ['kilit base raise --above-all --mark shop/billing=4720', 'kilit base raise 3000000000 --yes'],
      run: (input, io) => withCluster(input, io, (cluster) => raise(cluster, input, io)),
    },
  },
};

interface Present {
  readonly namespace: RawNamespace;
  readonly facts: BaseFacts;
}

async function readPresent(cluster: Cluster, input: Input): Promise<Present> {
  const marks = marksOf(input);
  const namespace = await readNamespace(cluster, await operatorNamespace(cluster, input));
  return { namespace, facts: await readBaseFacts(cluster, baseOf(namespace), marks) };
}

async function show(cluster: Cluster, input: Input, io: Io): Promise<Exit> {
  const { namespace, facts } = await readPresent(cluster, input);
  const format = valueOf(input, 'output');
  const behind = notAbove(facts.base, facts) !== undefined;
  if (format === 'json' || format === 'yaml') {
    await printData(io, format, {
      namespace: namespace.metadata.name,
      base: String(facts.base),
      revision: String(facts.revision),
      nextToken: String(facts.base + facts.revision),
      greatestToken:
        facts.greatest === undefined ? null : { token: String(facts.greatest.token), where: facts.greatest.where },
      behind,
      proposedBase: behind ? String(proposedBase(facts)) : null,
    });
  } else {
    io.out(`${factLines(namespace, facts).join('\n')}\n`);
    if (behind) io.out(`\nThe revision fell behind. Raise the base: kilit base raise ${proposedBase(facts)}\n`);
  }
  return behind ? Exit.failed : Exit.ok;
}

const factLines = (namespace: RawNamespace, { base, revision, greatest }: BaseFacts): readonly string[] => [
  `base             ${base}   (annotation ${TOKEN_BASE_ANNOTATION} of Namespace ${namespace.metadata.name})`,
  `revision         ${revision}`,
  `next token       ${base + revision} or more`,
  `greatest token   ${greatest === undefined ? 'none was issued' : `${greatest.token}   (${greatest.where})`}`,
];

async function raise(cluster: Cluster, input: Input, io: Io): Promise<Exit> {
  const [text] = input.operands;
  const aboveAll = isGiven(input, 'above-all');
  if ((text === undefined) !== aboveAll) {
    throw new Failure('Give either TO or --above-all. See: kilit base raise --help', { exit: Exit.usage });
  }
  const given = parseTokenBase(text);
  if (text !== undefined && given === undefined) {
    throw new Failure(`TO must be a decimal integer below 10^16, not '${text}'.`, { exit: Exit.usage });
  }
  const { namespace, facts } = await readPresent(cluster, input);
  const to = given ?? proposedBase(facts);
  const fault = raiseFault(to, facts);
  if (fault !== undefined) throw new Failure(`Nothing was written: ${fault}.`);
  const tooLow = notAbove(to, facts);
  if (tooLow !== undefined) {
    throw new Failure(
      `Nothing was written: with base ${to} the next token would be ${to + facts.revision}, not above ${tooLow.token} (${tooLow.where}). At least: kilit base raise ${proposedBase(facts)}`,
    );
  }
  io.err(`${factLines(namespace, facts).join('\n')}\n`);
  io.err(`new base         ${to}   (next token ${to + facts.revision} or more)\n\n`);
  io.err(
    'Every later token grows by the difference. It cannot be taken back. Is every token ever issued smaller, also those after the backup?\n',
  );
  await confirm(input, io, `Raise the token base from ${facts.base} to ${to}`);
  const { name, uid, resourceVersion } = namespace.metadata;
  await cluster.request({
    verb: 'PATCH',
    path: objectPath('namespaces', undefined, name),
    body: { metadata: { uid, resourceVersion, annotations: { [TOKEN_BASE_ANNOTATION]: String(to) } } },
  });
  io.out(`The token base is ${to}.\n`);
  io.err(`After a restore restart the operator: kubectl rollout restart deployment -n ${name}\n`);
  return Exit.ok;
}
