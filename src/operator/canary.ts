import { CANARY_LEASE, LOCK_LABEL, TOKEN_ANNOTATION } from '../api/names.ts';
import { ReadyReason } from '../api/reasons.ts';
import type { GrantGate } from '../core/observed.ts';
import type { KubeClient } from '../kube/client.ts';
import { ApiError } from '../kube/errors.ts';
import { collectionPath } from '../kube/paths.ts';
import { type Clock, instant, systemClock } from './clock.ts';
import type { Log } from './log.ts';

/** How often the canary sings, in milliseconds. */
const PERIOD_MS = 60_000;
/** Before the first success, and after a failure, it tries more often. */
const RETRY_MS = 5_000;
/** Grants stop when the rule was last seen enforced this long ago. */
const TRUST_MS = 3 * PERIOD_MS;

export type CanaryResult = 'enforced' | 'notEnforced' | 'unknown';

/**
 * Asks the API server, by a dry run, for a Lease that is made already held: the policy `kilit-lease` must refuse it.
 *
 * A policy is enforced only about a second after its install, and somebody may delete its binding; without it anybody
 * may give himself any token. So no grant is given before the refusal was seen, nor after it stayed away.
 */
export async function checkPolicy(client: KubeClient, namespace: string, signal?: AbortSignal): Promise<CanaryResult> {
  try {
    await client.request({
      verb: 'POST',
      path: `${collectionPath('leases', namespace)}?dryRun=All`,
      body: {
        apiVersion: 'coordination.k8s.io/v1',
        kind: 'Lease',
        metadata: {
          name: CANARY_LEASE,
          labels: { [LOCK_LABEL]: CANARY_LEASE.slice('kilit.'.length) },
          annotations: { [TOKEN_ANNOTATION]: '1' },
        },
        spec: { holderIdentity: 'canary_0', leaseDurationSeconds: 15 },
      },
      ...(signal !== undefined && { signal }),
    });
    return 'notEnforced';
  } catch (err) {
    const refused = err instanceof ApiError && err.message.includes("ValidatingAdmissionPolicy 'kilit-lease'");
    return refused ? 'enforced' : 'unknown';
  }
}

export interface Canary {
  /** May grants be given as far as the policy goes? */
  gate(): { readonly open: true } | Extract<GrantGate, { open: false }>;
  /** Checks now, and then for ever until `signal` aborts. Resolves after the first check. */
  start(signal: AbortSignal): Promise<void>;
}

export function createCanary(deps: {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly log: Log;
  readonly checked: (result: CanaryResult) => void;
  /** The gate has opened or closed. */
  readonly gateChanged: () => void;
  readonly clock?: Pick<Clock, 'monotonicSeconds' | 'setTimer'>;
}): Canary {
  const { clock = systemClock } = deps;
  let lastEnforced: number | undefined;
  let lastResult: CanaryResult = 'unknown';
  let toldOpen = false;

  const isOpen = () =>
    lastResult !== 'notEnforced' && lastEnforced !== undefined && instant(clock) - lastEnforced < TRUST_MS;

  async function check(signal: AbortSignal): Promise<void> {
    const result = await checkPolicy(deps.client, deps.namespace, signal);
    if (result === 'enforced') lastEnforced = instant(clock);
    lastResult = result;
    deps.checked(result);
    if (result === 'notEnforced') {
      deps.log.error({ policy: 'kilit-lease' }, 'Lease policy is not enforced; granting nothing');
    }
    if (toldOpen === isOpen()) return;
    toldOpen = !toldOpen;
    deps.gateChanged();
  }

  return {
    gate() {
      if (isOpen()) return { open: true };
      const message =
        lastResult === 'notEnforced'
          ? 'The API server accepted a Lease that policy kilit-lease must refuse. Is its binding there? Run helm upgrade to restore it.'
          : 'The API server has not yet shown that it enforces policy kilit-lease.';
      return { open: false, reason: ReadyReason.PolicyNotEnforced, message };
    },
    async start(signal) {
      await check(signal);
      const again = () => {
        if (signal.aborted) return;
        const waitMs = lastResult === 'enforced' ? PERIOD_MS : RETRY_MS;
        clock.setTimer(waitMs / 1000, () => void check(signal).finally(again));
      };
      again();
    },
  };
}
