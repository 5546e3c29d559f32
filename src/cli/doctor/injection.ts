import { LOCK_LABEL, SIDECAR_CONTAINER } from '../../api/names.ts';
import { ApiError } from '../../kube/errors.ts';
import { collectionPath } from '../../kube/paths.ts';
import type { Cluster } from '../connect.ts';
import { missingRight } from '../explain.ts';
import type { InjectionFact } from './facts.ts';

/** Passes the restricted Pod Security Standard, so that a namespace that demands it shows what the policies do. */
const POD = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { generateName: 'kilit-doctor-', labels: { [LOCK_LABEL]: 'kilit-doctor' } },
  spec: {
    securityContext: { runAsNonRoot: true, runAsUser: 65_532, seccompProfile: { type: 'RuntimeDefault' } },
    containers: [
      {
        name: 'app',
        image: 'kilit.invalid/none',
        securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } },
        resources: { requests: { cpu: '1m', memory: '1Mi' }, limits: { cpu: '1m', memory: '1Mi' } },
      },
    ],
  },
};

interface MadePod {
  readonly spec?: {
    readonly initContainers?: readonly { readonly name: string; readonly restartPolicyRules?: readonly unknown[] }[];
  };
}

/** Asks for a labelled Pod by a dry run and looks at what the policies have made of it. */
export async function tryInjection(cluster: Cluster, namespace: string): Promise<InjectionFact> {
  const path = `${collectionPath('pods', namespace)}?dryRun=All`;
  try {
    const { spec } = await cluster.request<MadePod>({ verb: 'POST', path, body: POD });
    const sidecar = spec?.initContainers?.find(({ name }) => name === SIDECAR_CONTAINER);
    if (sidecar === undefined) return { kind: 'bare' };
    return { kind: sidecar.restartPolicyRules === undefined ? 'dropped' : 'injected' };
  } catch (err) {
    if (!(err instanceof ApiError) || err.status === 0) throw err;
    if (err.message.includes("ValidatingAdmissionPolicy 'kilit-")) return { kind: 'refused', why: err.message };
    return { kind: 'unknown', why: missingRight(err.message) ?? err.message };
  }
}
