/** After a failed test of the cluster: what the operator wrote and what the cluster told meanwhile. CI keeps nothing else. */
import { afterEach } from 'vitest';
import { kubectl } from './cluster.ts';
import { OPERATOR_NAMESPACE } from './install.ts';

const LINES = 150;

afterEach(({ task }) => {
  const { result } = task;
  if (result?.state !== 'fail') return;
  const since = new Date(result.startTime ?? 0).toISOString();
  told('The operator’s log', () =>
    kubectl(
      'logs',
      '-n',
      OPERATOR_NAMESPACE,
      '-l',
      'app.kubernetes.io/name=kilit',
      '--tail=-1',
      `--since-time=${since}`,
    ),
  );
  told('Events', () => kubectl('get', 'events', '-A', '--sort-by=.metadata.creationTimestamp'));
  told('Locks', () => kubectl('get', 'distributedlocks', '-A', '-o', 'wide'));
});

/** Never hides the failure that it tells about. */
function told(what: string, ask: () => string): void {
  let text: string;
  try {
    text = ask();
  } catch (error) {
    text = String(error);
  }
  const lines = text.trimEnd().split('\n');
  console.log(`${what} (${lines.length} lines, the last ${LINES} at most):\n${lines.slice(-LINES).join('\n')}`);
}
