import { leaseName } from '../api/names.ts';
import { EventReason } from '../api/reasons.ts';
import { formatMicroTime } from '../core/micro-time.ts';
import type { ApiClient } from './api-client.ts';
import type { SidecarConfig } from './config.ts';

/** The exit waits no longer than this for an event: stopping the program comes first. */
export const EVENT_TIMEOUT_MS = 300;

/** Writes the Kubernetes event that says why the lock was lost. Best effort: answers whether it worked. */
export async function postLossEvent(
  { api, wallMicros }: { readonly api: ApiClient; readonly wallMicros: () => bigint },
  {
    config,
    explanation,
    token,
  }: { readonly config: SidecarConfig; readonly explanation: string; readonly token: string | undefined },
): Promise<boolean> {
  const { namespace, pod, lock } = config;
  const time = wallMicros();
  const body = JSON.stringify({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `${pod.name.slice(0, 200)}.${time.toString(16)}`, namespace },
    eventTime: formatMicroTime(time),
    reportingController: 'kilit.dev/sidecar',
    reportingInstance: pod.name.slice(0, 128),
    action: 'Stop',
    reason: EventReason.Lost,
    type: 'Warning',
    regarding: { apiVersion: 'v1', kind: 'Pod', namespace, name: pod.name, uid: pod.uid },
    related: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name: leaseName(lock) },
    note: `Lost lock ${lock}${token === undefined ? '' : ` (token ${token})`}. ${explanation}`.slice(0, 1000),
  });
  const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
  const reply = await api.send({ method: 'POST', path, body, timeoutMs: EVENT_TIMEOUT_MS });
  return reply.kind === 'answer' && reply.status < 300;
}
