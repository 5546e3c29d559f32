/** Where each kind lives at the API server. */
const ROOTS = {
  pods: '/api/v1',
  nodes: '/api/v1',
  namespaces: '/api/v1',
  leases: '/apis/coordination.k8s.io/v1',
  roles: '/apis/rbac.authorization.k8s.io/v1',
  rolebindings: '/apis/rbac.authorization.k8s.io/v1',
  events: '/apis/events.k8s.io/v1',
  distributedlocks: '/apis/kilit.dev/v1alpha1',
  deployments: '/apis/apps/v1',
  networkpolicies: '/apis/networking.k8s.io/v1',
  selfsubjectreviews: '/apis/authentication.k8s.io/v1',
  selfsubjectaccessreviews: '/apis/authorization.k8s.io/v1',
  mutatingadmissionpolicies: '/apis/admissionregistration.k8s.io/v1',
  mutatingadmissionpolicybindings: '/apis/admissionregistration.k8s.io/v1',
  validatingadmissionpolicies: '/apis/admissionregistration.k8s.io/v1',
  validatingadmissionpolicybindings: '/apis/admissionregistration.k8s.io/v1',
} as const;

export type Resource = keyof typeof ROOTS;

/** The path of a collection; `namespace` undefined: of all namespaces, or of a cluster-scoped kind. */
export function collectionPath(resource: Resource, namespace?: string): string {
  const scope = namespace === undefined ? '' : `/namespaces/${encodeURIComponent(namespace)}`;
  return `${ROOTS[resource]}${scope}/${resource}`;
}

export function objectPath(resource: Resource, namespace: string | undefined, name: string): string {
  return `${collectionPath(resource, namespace)}/${encodeURIComponent(name)}`;
}
