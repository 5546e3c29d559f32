import { leaseName } from '../api/names.ts';
import { EventReason } from '../api/reasons.ts';
import { formatMicroTime } from '../core/micro-time.ts';
import type { ApiClient } from './api-client.ts';
import type { SidecarConfig } from './config.ts';

/** The exit waits no longer than this for an event: stopping the program comes first. */
export const EVENT_TIMEOUT_MS = 300;
/** Nobody waits for the others. */
const PATIENT_EVENT_TIMEOUT_MS = 5000;

interface Ports {
  readonly api: ApiClient;
  readonly wallMicros: () => bigint;
}

/** Writes the Kubernetes event that says why the lock was lost. Best effort: answers whether it worked. */
export function postLossEvent(
  ports: Ports,
  {
    config,
    explanation,
    token,
  }: { readonly config: SidecarConfig; readonly explanation: string; readonly token: string | undefined },
): Promise<boolean> {
  const note = `Lost lock ${config.lock}${token === undefined ? '' : ` (token ${token})`}. ${explanation}`;
  return postEvent(ports, config, {
    reason: EventReason.Lost,
    action: 'Stop',
    type: 'Warning',
    note,
    timeoutMs: EVENT_TIMEOUT_MS,
  });
}

/**
 * Says that the program goes on although the lease is not renewed, or that it is renewed again (ContinueFenced).
 *
 * The API server cannot be reached when that begins, more often than not: the second event tells then how long it was.
 */
export function postUnrenewedEvent(
  ports: Ports,
  {
    config,
    reason,
    token,
    sinceRenewalSeconds,
  }: {
    readonly config: SidecarConfig;
    readonly reason: 'Unrenewed' | 'Renewed';
    readonly token: string;
    readonly sinceRenewalSeconds: number;
  },
): Promise<boolean> {
  const about = `lock ${config.lock} (token ${token})`;
  return reason === EventReason.Renewed
    ? postEvent(ports, config, {
        reason,
        action: 'Renew',
        timeoutMs: PATIENT_EVENT_TIMEOUT_MS,
        type: 'Normal',
        note: `Renewed ${about} again, ${sinceRenewalSeconds} s after the renewal before; nobody had taken it over.`,
      })
    : postEvent(ports, config, {
        reason,
        action: 'GoOn',
        timeoutMs: PATIENT_EVENT_TIMEOUT_MS,
        type: 'Warning',
        note: `Could not renew ${about} for ${sinceRenewalSeconds} s. The program goes on (onRenewalFailure: ContinueFenced); only a guard keeps it from writing beside another holder.`,
      });
}

async function postEvent(
  { api, wallMicros }: Ports,
  { namespace, pod, lock }: SidecarConfig,
  {
    timeoutMs,
    ...event
  }: {
    readonly timeoutMs: number;
    readonly reason: string;
    readonly action: string;
    readonly type: 'Normal' | 'Warning';
    readonly note: string;
  },
): Promise<boolean> {
  const time = wallMicros();
  const body = JSON.stringify({
    apiVersion: 'events.k8s.io/v1',
    kind: 'Event',
    metadata: { name: `${pod.name.slice(0, 200)}.${time.toString(16)}`, namespace },
    eventTime: formatMicroTime(time),
    reportingController: 'kilit.dev/sidecar',
    reportingInstance: pod.name.slice(0, 128),
    regarding: { apiVersion: 'v1', kind: 'Pod', namespace, name: pod.name, uid: pod.uid },
    related: { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', namespace, name: leaseName(lock) },
    ...event,
    note: event.note.slice(0, 1000),
  });
  const path = `/apis/events.k8s.io/v1/namespaces/${namespace}/events`;
  const reply = await api.send({ method: 'POST', path, body, timeoutMs });
  return reply.kind === 'answer' && reply.status < 300;
}
