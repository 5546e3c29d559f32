/** The end: what each act showed, and what to try next. Pure. */
import { seconds } from '../cluster/progress.ts';
import type { Next } from './hand-over.ts';
import { LOCK, NAMESPACE } from './objects.ts';

export interface Shown extends Next {
  readonly title: string;
}

/** One line per act. */
export function summary(shown: readonly Shown[]): string[] {
  const cells = shown.map(({ title, from, to, afterMilliseconds }) => [
    title,
    `${from.token} → ${to.token}`,
    seconds(afterMilliseconds).padStart(6),
  ]);
  const rows = [['', 'token', 'next program ran after'], ...cells];
  const width = (column: number): number => Math.max(...rows.map((row) => (row[column] ?? '').length)) + 3;
  return rows.map(
    (row) =>
      `  ${row
        .map((cell, column) => cell.padEnd(width(column)))
        .join('')
        .trimEnd()}`,
  );
}

const LEDGERS = [
  'The last act is examples/paused-holder; its README says how to play it by hand. Its ledgers:',
  '',
  `  kubectl exec -n ${NAMESPACE} postgres -- check guarded       # each customer charged once`,
  `  kubectl exec -n ${NAMESPACE} postgres -- check unguarded     # one of them twice`,
  `  kubectl exec -n ${NAMESPACE} postgres -- sql guarded "select * from kilit.refusals"`,
  '',
];

export interface Ending {
  readonly name: string;
  readonly kept: boolean;
  readonly defaultName: string;
  /** Whether the last act was played, which needs a PostgreSQL for this machine. */
  readonly billing: boolean;
}

export function outro(at: Ending): string[] {
  const nameFlag = at.name === at.defaultName ? '' : ` --name ${at.name}`;
  return [
    ...(at.kept
      ? ['Try next, in this folder:', '']
      : [
          'The cluster is gone. To play with it, keep it; then, in this folder:',
          '',
          `  npm run demo -- --keep${nameFlag}`,
        ]),
    `  eval "$(npm run --silent cluster -- kubeconfig --env --name ${at.name})"   # KUBECONFIG and PATH`,
    `  kubectl get dlock -n ${NAMESPACE} --watch                    # holder, token, waiters`,
    `  kubectl get dlock ${LOCK} -n ${NAMESPACE} -o yaml            # who waits, and why`,
    `  kubectl get pods -n ${NAMESPACE} -L kilit.dev/leader         # by this label a Service selects the holder`,
    `  kubectl delete pod -n ${NAMESPACE} -l kilit.dev/leader=true  # pass the lock on`,
    '',
    ...(at.billing ? LEDGERS : []),
    'A Deployment of your own, in the namespace of the lock, takes part by one label on its Pod template.',
    'It needs the strategy Recreate: a rolling update would keep the old Pod, which holds, until the new one is',
    'ready, which waits.',
    '',
    `  kubectl patch deployment mine -n ${NAMESPACE} -p '{"spec": {`,
    '    "strategy": {"type": "Recreate", "rollingUpdate": null},',
    `    "template": {"metadata": {"labels": {"kilit.dev/lock": "${LOCK}"}}}}}'`,
    '',
    'When done:',
    '',
    `  npm run cluster -- down --name ${at.name}`,
  ];
}
