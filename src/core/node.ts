/** What the operator keeps of a node. */
export interface NodeView {
  readonly name: string;
  readonly ready: boolean;
  /** Nothing new is scheduled onto it: the beginning of a drain. */
  readonly cordoned: boolean;
  readonly kubeletVersion: string;
  readonly declaredFeatures: readonly string[];
}

/** The part of a Node that decisions read. */
export interface RawNode {
  readonly metadata: { readonly name: string };
  readonly spec?: { readonly unschedulable?: boolean };
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    readonly nodeInfo?: { readonly kubeletVersion?: string };
    readonly declaredFeatures?: readonly string[];
  };
}

export function nodeView(node: RawNode): NodeView {
  return {
    name: node.metadata.name,
    ready: node.status?.conditions?.some((c) => c.type === 'Ready' && c.status === 'True') ?? false,
    cordoned: node.spec?.unschedulable ?? false,
    kubeletVersion: node.status?.nodeInfo?.kubeletVersion ?? '',
    declaredFeatures: node.status?.declaredFeatures ?? [],
  };
}

/** The first minor version of Kubernetes 1 whose kubelet has all that the gate rests on, switched on. */
const MINIMUM_MINOR = 36;
const REQUIRED_FEATURE = 'RestartAllContainersOnContainerExits';

/**
 * Why this node's kubelet cannot be trusted with the gate, or undefined.
 *
 * An older kubelet ignores `fileKeyRef` and *starts the program* with an empty token, so this must be known before a
 * grant (kubernetes-facts.md, "Downward API and env").
 */
export function nodeTooOld(node: NodeView): string | undefined {
  const version = /^v?(\d+)\.(\d+)/.exec(node.kubeletVersion);
  const [major, minor] = [Number(version?.[1] ?? 0), Number(version?.[2] ?? 0)];
  if (major < 1 || (major === 1 && minor < MINIMUM_MINOR)) {
    return `kubelet ${node.kubeletVersion || '(unknown)'} of node ${node.name} is older than v1.${MINIMUM_MINOR}`;
  }
  if (!node.declaredFeatures.includes(REQUIRED_FEATURE)) {
    return `kubelet of node ${node.name} does not declare the feature ${REQUIRED_FEATURE}`;
  }
  return undefined;
}
