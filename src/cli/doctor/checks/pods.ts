/** Checks of labelled Pods. Pure. */
import { DEFAULT_PORT, LOCK_LABEL, PORT_ANNOTATION, SIDECAR_CONTAINER } from '../../../api/names.ts';
import { orElse } from '../../attempt.ts';
import { viewOf } from '../../pod-view.ts';
import { some } from '../../text.ts';
import { type DoctorPod, type Facts, isLive, podName } from '../facts.ts';
import { type Finding, fail, ok, onRead, warn } from '../finding.ts';

export function injected({ pods }: Facts): readonly Finding[] {
  const check = 'pods-injected';
  return onRead(check, pods, (all) => {
    const live = all.filter(isLive);
    const bare = live.filter((pod) => !viewOf(pod).injected);
    if (bare.length === 0) return [ok(check, `All ${live.length} Pods with label ${LOCK_LABEL} have the sidecar`)];
    return [
      fail(check, {
        says: `Labelled without a sidecar: ${some(bare.map(podName))}.`,
        means:
          'They were made before kilit was installed, or past its policies: they run beside the holder, without lock or token.',
        todo: 'Make them anew: kubectl rollout restart, or delete the Pods.',
      }),
    ];
  });
}

export function lockExists({ pods, locks }: Facts): readonly Finding[] {
  const check = 'lock-exists';
  return onRead(check, pods, (all) =>
    onRead(check, locks, (known) => {
      const names = new Set(known.map(podName));
      const lost = all.filter(isLive).filter((pod) => !names.has(`${pod.metadata.namespace}/${lockOf(pod)}`));
      if (lost.length === 0) return [ok(check, 'Each labelled Pod names a lock that exists')];
      return [
        warn(check, {
          says: `Pods that name no lock of their namespace: ${some(lost.map((pod) => `${podName(pod)} (${lockOf(pod)})`))}.`,
          means: 'They wait until there is one.',
          todo: 'Create the DistributedLock, or correct the label in the Pod template.',
        }),
      ];
    }),
  );
}

const lockOf = ({ metadata }: DoctorPod): string => metadata.labels?.[LOCK_LABEL] ?? '';

/** A Pod that cannot reach the API server cannot say so there: its log and grants that were not confirmed do. */
export function reach({ sidecars, notConfirmed, egressPolicies }: Facts): readonly Finding[] {
  const check = 'pods-reach-api';
  const findings: Finding[] = [];
  const logs = orElse(sidecars, []);
  if (logs.length > 0) {
    const namespaces = new Set(logs.map(({ namespace }) => namespace));
    const policies = orElse(egressPolicies, []).filter(({ namespace }) => namespaces.has(namespace));
    const hint =
      policies.length === 0
        ? ''
        : ` NetworkPolicies on egress there: ${some(policies.map(({ namespace, name }) => `${namespace}/${name}`))}.`;
    const [first] = logs;
    findings.push(
      fail(check, {
        says: `Sidecars cannot follow their Lease: ${some(logs.map(({ namespace, pod }) => `${namespace}/${pod}`))}. The first says: ${first?.says}`,
        means: 'Such a Pod gets no lock, and loses the one it holds.',
        todo: `Let them reach the API server (its address and port, not the Service alone).${hint}`,
      }),
    );
  }
  const events = orElse(notConfirmed, []);
  if (events.length > 0) {
    const locks = [...new Set(events.map(({ regarding }) => regarding?.name ?? ''))];
    findings.push(
      warn(check, {
        says: `${events.length} grants were not confirmed lately, of locks ${some(locks)}. The last: ${events.at(-1)?.note}`,
        means: 'The sidecar did not answer its grant in time; the grant passed on.',
        todo: 'See its log (kubectl logs POD -c kilit), NetworkPolicies, and the load of its node.',
      }),
    );
  }
  if (findings.length > 0) return findings;
  return onRead(check, sidecars, () =>
    onRead(check, notConfirmed, () => [ok(check, 'No sidecar says that it cannot follow its Lease')]),
  );
}

const portOf = (pod: DoctorPod): number =>
  pod.spec.initContainers?.find(({ name }) => name === SIDECAR_CONTAINER)?.ports?.[0]?.containerPort ??
  Number(pod.metadata.annotations?.[PORT_ANNOTATION] ?? DEFAULT_PORT);

/** The scheduler and the kubelet know the port as a hostPort, and keep the second Pod away; a Pod past the policy is not kept. */
export function hostPorts({ pods }: Facts): readonly Finding[] {
  const check = 'host-ports';
  return onRead(check, pods, (all) => {
    const onHost = all.filter(({ spec }) => spec.hostNetwork === true);
    const taken = new Map<string, string[]>();
    for (const pod of onHost.filter((one) => isLive(one) && one.spec.nodeName !== undefined)) {
      const key = `port ${portOf(pod)} of node ${pod.spec.nodeName}`;
      taken.set(key, [...(taken.get(key) ?? []), podName(pod)]);
    }
    const clashes = [...taken]
      .filter(([, names]) => names.length > 1)
      .map(([where, names]) => `${where}: ${some(names)}`);
    const refused = onHost
      .filter((pod) => pod.status?.reason === 'NodePorts' || (isLive(pod) && waitsForPort(pod)))
      .map((pod) => `${podName(pod)} (port ${portOf(pod)})`);
    if (clashes.length + refused.length === 0) {
      return [
        ok(
          check,
          onHost.length === 0
            ? 'No labelled Pod uses hostNetwork'
            : `${onHost.length} Pods with hostNetwork have a port of their own`,
        ),
      ];
    }
    return [
      fail(check, {
        says: [
          ...(clashes.length === 0 ? [] : [`Two sidecars on ${some(clashes, 3)}.`]),
          ...(refused.length === 0 ? [] : [`No node has the port free for ${some(refused)}.`]),
        ].join(' '),
        means:
          "One sidecar would answer the other's probe; such a Pod is kept from starting, or is not gated by its probe.",
        todo: `Give each workload with hostNetwork its own port (annotation ${PORT_ANNOTATION}), and no more replicas than nodes.`,
      }),
    ];
  });
}

const waitsForPort = (pod: DoctorPod): boolean =>
  pod.status?.conditions?.some(
    ({ type, status, message = '' }) => type === 'PodScheduled' && status === 'False' && message.includes('free ports'),
  ) ?? false;

const HOLDER_FINALIZER = 'kilit.dev/holder';

export function finalizers({ pods, leases, locks }: Facts): readonly Finding[] {
  const check = 'finalizers';
  return onRead(check, pods, (all) => {
    const kept = all.filter(({ metadata }) => metadata.finalizers?.includes(HOLDER_FINALIZER) === true);
    if (kept.length === 0) return [ok(check, 'No Pod is kept by a finalizer of kilit')];
    return onRead(check, leases, (records) =>
      onRead(check, locks, (known) => {
        const held = new Set(records.map(({ spec }) => spec?.holderIdentity?.split('_').at(-1)));
        const names = new Set(known.map(podName));
        const left = kept.filter(
          (pod) => !held.has(pod.metadata.uid) || !names.has(`${pod.metadata.namespace}/${lockOf(pod)}`),
        );
        if (left.length === 0)
          return [ok(check, `${kept.length} Pods are kept by a finalizer of kilit, all of them holders`)];
        return [
          warn(check, {
            says: `Pods with finalizer ${HOLDER_FINALIZER} that hold no lock: ${some(left.map(podName))}.`,
            means: 'When they are deleted they stay until the operator takes it away.',
            todo: 'If the operator runs, this passes by itself; if kilit was uninstalled, remove the finalizer by hand.',
          }),
        ];
      }),
    );
  });
}
