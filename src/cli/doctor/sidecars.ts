import { SIDECAR_CONTAINER } from '../../api/names.ts';
import { ApiError } from '../../kube/errors.ts';
import { objectPath } from '../../kube/paths.ts';
import type { Cluster } from '../connect.ts';
import { viewOf } from '../pod-view.ts';
import { type DoctorPod, isLive, type SidecarTrouble } from './facts.ts';

/** Logs are read of so many Pods at most, and so many lines of each. */
const MOST_PODS = 50;
const LINES = 50;
/** The API server asks the node's kubelet, which may be away. */
const LOG_TIMEOUT_MS = 5_000;

/** What running sidecars last said about following their Lease. @throws ApiError 403 without the right to read logs. */
export async function readSidecars(cluster: Cluster, pods: readonly DoctorPod[]): Promise<readonly SidecarTrouble[]> {
  const running = pods.filter((pod) => isLive(pod) && viewOf(pod).sidecarRunning).slice(0, MOST_PODS);
  const found = await Promise.all(
    running.map(async ({ metadata: { namespace, name } }) => {
      const says = troubleIn(await readLog(cluster, namespace, name));
      return says === undefined ? [] : [{ namespace, pod: name, says }];
    }),
  );
  return found.flat();
}

async function readLog(cluster: Cluster, namespace: string, name: string): Promise<string> {
  const path = `${objectPath('pods', namespace, name)}/log?container=${SIDECAR_CONTAINER}&tailLines=${LINES}`;
  try {
    return await cluster.request<string>({ verb: 'GET', path, answer: 'text', timeoutMs: LOG_TIMEOUT_MS });
  } catch (err) {
    // A Pod that has gone or whose kubelet does not answer has no log; other checks see that.
    if (err instanceof ApiError && err.status !== 403) return '';
    throw err;
  }
}

/** The last line that says whether the Lease can be followed: of `src/sidecar/state-log.ts`. */
export function troubleIn(log: string): string | undefined {
  let trouble: string | undefined;
  for (const line of log.split('\n')) {
    const { msg, reason } = parsed(line);
    if (msg === 'Could follow the Lease again' || msg === 'Saw grant') trouble = undefined;
    else if (msg === 'Lease could not be followed') trouble = reason ?? msg;
    // Before its lock exists a sidecar is forbidden: check `lock-exists` says so better.
    else if (msg?.includes('does not exist in namespace')) trouble = undefined;
  }
  return trouble;
}

function parsed(line: string): { readonly msg?: string; readonly reason?: string } {
  try {
    return JSON.parse(line) as { msg?: string; reason?: string };
  } catch {
    return {};
  }
}
