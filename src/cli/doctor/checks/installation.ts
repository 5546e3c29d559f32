/** Checks of what the chart installs and the cluster must offer. Pure. */
import { MUTATING_POLICIES, VALIDATING_POLICIES } from '../../../api/generated/policies.ts';
import { GROUP, PLURAL } from '../../../api/names.ts';
import { assertNever } from '../../../core/assert-never.ts';
import { nodeTooOld, nodeView } from '../../../core/node.ts';
import { some } from '../../text.ts';
import type { Facts } from '../facts.ts';
import { type Finding, fail, notChecked, ok, onRead, warn } from '../finding.ts';

const MINIMUM_MINOR = 36;

export function apiServer({ server }: Facts): readonly Finding[] {
  const check = 'api-server';
  const [major, minor] = [Number.parseInt(server.major, 10), Number.parseInt(server.minor, 10)];
  if (major > 1 || (major === 1 && minor >= MINIMUM_MINOR)) return [ok(check, `Kubernetes ${server.gitVersion}`)];
  return [
    fail(check, {
      says: `Kubernetes ${server.gitVersion} is older than 1.${MINIMUM_MINOR}.`,
      means: 'Pods are not injected: this API server has no MutatingAdmissionPolicy v1.',
      todo: `Upgrade the control plane and every node to 1.${MINIMUM_MINOR} or newer.`,
    }),
  ];
}

export function crd({ served }: Facts): readonly Finding[] {
  const check = 'crd';
  if (served.ok && served.value.includes(PLURAL))
    return [ok(check, `${PLURAL}.${GROUP} is served as v1alpha1, as this kilit knows it`)];
  return [
    fail(check, {
      says: `The API server does not serve ${PLURAL} of ${GROUP}/v1alpha1.`,
      means: 'There are no locks here, or they are of another version of kilit.',
      todo: 'Install the chart (crds.enabled=true), or use the kilit that belongs to the installed chart.',
    }),
  ];
}

export function policies({ policies: read }: Facts): readonly Finding[] {
  const check = 'policies';
  return onRead(check, read, ({ mutating, validating, bindings }) => {
    const missing = [
      ...MUTATING_POLICIES.filter((name) => !mutating.includes(name)),
      ...Object.keys(VALIDATING_POLICIES).filter((name) => !validating.includes(name)),
    ];
    const isBound = (name: string, action?: string): boolean =>
      bindings.some(({ policy, actions }) => policy === name && (action === undefined || actions.includes(action)));
    const unbound = [
      ...MUTATING_POLICIES.filter((name) => mutating.includes(name) && !isBound(name)),
      ...Object.entries(VALIDATING_POLICIES).flatMap(([name, action]) =>
        validating.includes(name) && !isBound(name, action) ? [`${name} (${action})`] : [],
      ),
    ];
    if (missing.length + unbound.length === 0) {
      return [
        ok(
          check,
          `All ${MUTATING_POLICIES.length + Object.keys(VALIDATING_POLICIES).length} policies are there and bound`,
        ),
      ];
    }
    const says = [
      ...(missing.length === 0 ? [] : [`Missing: ${some(missing)}.`]),
      ...(unbound.length === 0 ? [] : [`Without a binding: ${some(unbound)}.`]),
    ].join(' ');
    return [
      fail(check, {
        says,
        means: 'The API server does not enforce what kilit promises: tokens may repeat, or Pods run ungated.',
        todo: 'Restore them: helm upgrade kilit charts/kilit -n kilit-system, or apply the manifest again.',
      }),
    ];
  });
}

export function enforced({ canary }: Facts): readonly Finding[] {
  const check = 'policy-enforced';
  if (canary.kind === 'enforced')
    return [ok(check, 'A Lease that is made already held is refused by kilit-lease (dry run)')];
  if (canary.kind === 'unknown') {
    return [
      notChecked(check, {
        kind: 'forbidden',
        why: `the dry run of a forbidden Lease did not reach the policy (${canary.why}). The operator tries it each minute: see condition Ready of any lock`,
      }),
    ];
  }
  return [
    fail(check, {
      says: 'The API server accepted a Lease that kilit-lease must refuse (dry run).',
      means: 'Anybody may give himself any token. The operator grants nothing meanwhile.',
      todo: 'Restore the policy and its binding: helm upgrade kilit charts/kilit -n kilit-system.',
    }),
  ];
}

const RESTORE = 'Restore the policies: helm upgrade kilit charts/kilit -n kilit-system.';

/** A policy may be there and bound, and be kept from acting all the same, by its conditions or by a feature gate. */
export function injection({ injection: fact }: Facts): readonly Finding[] {
  const check = 'injection';
  switch (fact.kind) {
    case 'injected':
      return [ok(check, 'A labelled Pod gets the sidecar (dry run)')];
    case 'unknown':
      return [
        notChecked(check, { kind: 'forbidden', why: `a labelled Pod could not be tried by a dry run (${fact.why})` }),
      ];
    case 'bare':
      return [
        fail(check, {
          says: 'A labelled Pod gets no sidecar, and is let in (dry run).',
          means: 'It would run at once, beside the holder, without lock or token.',
          todo: RESTORE,
        }),
      ];
    case 'dropped':
      return [
        fail(check, {
          says: 'The sidecar loses its restartPolicyRules (dry run).',
          means:
            'The feature gate RestartAllContainersOnContainerExits is off: a holder that loses the lock is not stopped.',
          todo: 'Switch the gate on in the API server and in every kubelet; it is on by default from 1.36.',
        }),
      ];
    case 'refused':
      return [
        fail(check, {
          says: `A labelled Pod is refused (dry run): ${fact.why}`,
          means: 'No Pod can take a lock.',
          todo: RESTORE,
        }),
      ];
    default:
      return assertNever(fact);
  }
}

export function nodes({ nodes: read }: Facts): readonly Finding[] {
  const check = 'nodes';
  return onRead(check, read, (raw) => {
    const views = raw.map(nodeView);
    const old = views.flatMap((node) => nodeTooOld(node) ?? []);
    const notReady = views.filter(({ ready }) => !ready).map(({ name }) => name);
    const findings: Finding[] = [];
    if (old.length > 0) {
      findings.push(
        fail(check, {
          says: `The ${some(old, 3)}.`,
          means: 'The gate would not hold there, so Pods on these nodes are never granted a lock.',
          todo: 'Upgrade the nodes to 1.36 or newer with default feature gates, or keep labelled Pods away from them.',
        }),
      );
    }
    if (notReady.length > 0) {
      findings.push(
        warn(check, {
          says: `Not Ready: ${some(notReady)}.`,
          means: 'Waiters there are passed over; a holder there loses the lock when its lease runs out.',
          todo: 'See: kubectl describe node NAME.',
        }),
      );
    }
    if (findings.length > 0) return findings;
    return [ok(check, `All ${views.length} are Ready and new enough`)];
  });
}
