/** Service meshes must let the kubelet's probe in and the sidecar's requests out. Pure. */
import { DEFAULT_PORT, PORT_ANNOTATION, SIDECAR_CONTAINER } from '../../../api/names.ts';
import { orElse } from '../../attempt.ts';
import { some } from '../../text.ts';
import { type DoctorPod, type Facts, isLive, podName } from '../facts.ts';
import { type Finding, fail, ok, onRead, warn } from '../finding.ts';

interface Mesh {
  readonly proxy: string;
  readonly inbound: string;
  readonly outbound: readonly string[];
  /** Does a namespace with these labels and annotations have its Pods injected? */
  readonly marks: (labels: Readonly<Record<string, string>>, annotations: Readonly<Record<string, string>>) => boolean;
}

const MESHES: readonly Mesh[] = [
  {
    proxy: 'istio-proxy',
    inbound: 'traffic.sidecar.istio.io/excludeInboundPorts',
    outbound: ['traffic.sidecar.istio.io/excludeOutboundPorts', 'traffic.sidecar.istio.io/excludeOutboundIPRanges'],
    marks: (labels) => labels['istio-injection'] === 'enabled' || 'istio.io/rev' in labels,
  },
  {
    proxy: 'linkerd-proxy',
    inbound: 'config.linkerd.io/skip-inbound-ports',
    outbound: ['config.linkerd.io/skip-outbound-ports', 'config.linkerd.io/skip-subnets'],
    marks: (_, annotations) => annotations['linkerd.io/inject'] === 'enabled',
  },
];

export function mesh({ pods, namespaces }: Facts): readonly Finding[] {
  const check = 'mesh';
  return onRead(check, pods, (all) => {
    const marked = new Map(orElse(namespaces, []).map(({ metadata }) => [metadata.name, metadata]));
    const inMesh = all.filter(isLive).flatMap((pod) => {
      const { labels = {}, annotations = {} } = marked.get(pod.metadata.namespace) ?? {};
      const found = MESHES.find((one) => hasContainer(pod, one.proxy) || one.marks(labels, annotations));
      return found === undefined ? [] : [{ pod, found }];
    });
    if (inMesh.length === 0) {
      const blind = namespaces.ok ? '' : ', as far as its own containers tell (namespaces were not read)';
      return [ok(check, `No labelled Pod is in a mesh of Istio or Linkerd${blind}`)];
    }
    const closedIn = inMesh.filter(({ pod, found }) => !listsPort(pod, found.inbound));
    const closedOut = inMesh.filter(
      ({ pod, found }) =>
        startsLate(pod, found) && !found.outbound.some((key) => (pod.metadata.annotations?.[key] ?? '') !== ''),
    );
    const findings = [
      ...(closedIn.length === 0
        ? []
        : [
            fail(check, {
              says: `The port of the sidecar is not excluded from the mesh: ${some(closedIn.map(({ pod }) => podName(pod)))}.`,
              means: "A mesh in strict mode refuses the kubelet's probe of it, and the program never starts.",
              todo: `Add the port to ${some([...new Set(closedIn.map(({ found }) => found.inbound))])}; kilit does it when it injects.`,
            }),
          ]),
      ...(closedOut.length === 0
        ? []
        : [
            warn(check, {
              says: `The proxy starts after the sidecar and the API server is not excluded: ${some(closedOut.map(({ pod }) => podName(pod)))}.`,
              means:
                'The sidecar waits before the proxy runs; if traffic is redirected to the proxy by then it cannot reach the API server.',
              todo: `Let the mesh inject native sidecars, or exclude the API server: ${some([...new Set(closedOut.map(({ found }) => found.outbound[0] ?? ''))])}.`,
            }),
          ]),
    ];
    return findings.length > 0 ? findings : [ok(check, `${inMesh.length} Pods in a mesh have the exclusions`)];
  });
}

const hasContainer = ({ spec }: DoctorPod, name: string): boolean =>
  [...spec.containers, ...(spec.initContainers ?? [])].some((container) => container.name === name);

/** As an ordinary container it starts when all init containers have; as a native sidecar it should stand before kilit's. */
function startsLate({ spec }: DoctorPod, { proxy }: Mesh): boolean {
  if (spec.containers.some(({ name }) => name === proxy)) return true;
  const names = (spec.initContainers ?? []).map(({ name }) => name);
  return names.indexOf(proxy) > names.indexOf(SIDECAR_CONTAINER);
}

function listsPort({ metadata }: DoctorPod, key: string): boolean {
  const port = metadata.annotations?.[PORT_ANNOTATION] ?? String(DEFAULT_PORT);
  const listed = (metadata.annotations?.[key] ?? '').split(',').map((one) => one.trim());
  return listed.includes(port) || listed.includes('*');
}
