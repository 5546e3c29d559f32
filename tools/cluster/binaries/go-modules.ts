/** The wrapper modules by which Kubernetes, etcd and Helm are built from their published Go modules. Pure. */
import { ETCD_VERSION, HELM_VERSION, KUBERNETES_VERSION } from '../constants.ts';

export interface Product {
  /** Folder in the cache, and of the committed go.mod and go.sum. */
  readonly name: string;
  readonly version: string;
  readonly module: string;
  /** Binary name → Go package. */
  readonly binaries: Readonly<Record<string, string>>;
  readonly linkerFlags: string;
  /** The committed go.mod and go.sum are for this version; another one resolves its own. */
  readonly pinnedVersion: string;
}

const KUBERNETES_PROGRAMS = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'kubectl',
];

export function kubernetes(version: string = KUBERNETES_VERSION): Product {
  const [major = '', minor = ''] = version.split('.');
  const stamp = 'k8s.io/component-base/version';
  return {
    name: 'kubernetes',
    version,
    module: 'k8s.io/kubernetes',
    binaries: Object.fromEntries(KUBERNETES_PROGRAMS.map((name) => [name, `k8s.io/kubernetes/cmd/${name}`])),
    linkerFlags: `-s -w -X ${stamp}.gitVersion=v${version} -X ${stamp}.gitMajor=${major} -X ${stamp}.gitMinor=${minor}`,
    pinnedVersion: KUBERNETES_VERSION,
  };
}

export const etcd: Product = {
  name: 'etcd',
  version: ETCD_VERSION,
  module: 'go.etcd.io/etcd/server/v3',
  binaries: { etcd: 'go.etcd.io/etcd/server/v3' },
  linkerFlags: '-s -w',
  pinnedVersion: ETCD_VERSION,
};

/** Restores snapshots of etcd; built only when a test asks for it. */
export const etcdutl: Product = {
  name: 'etcdutl',
  version: ETCD_VERSION,
  module: 'go.etcd.io/etcd/etcdutl/v3',
  binaries: { etcdutl: 'go.etcd.io/etcd/etcdutl/v3' },
  linkerFlags: '-s -w',
  pinnedVersion: ETCD_VERSION,
};

export const helm: Product = {
  name: 'helm',
  version: HELM_VERSION,
  module: 'helm.sh/helm/v4',
  binaries: { helm: 'helm.sh/helm/v4/cmd/helm' },
  linkerFlags: `-s -w -X helm.sh/helm/v4/internal/version.version=v${HELM_VERSION}`,
  pinnedVersion: HELM_VERSION,
};

/** The names of the staging modules in the `replace` block of k8s.io/kubernetes' own go.mod. */
export function stagingModules(goMod: string): readonly string[] {
  return [...goMod.matchAll(/^\t(k8s\.io\/[a-z0-9-]+) => \.\/staging/gm)].map((match) => match[1] ?? '');
}

/**
 * `upstreamGoMod` is the go.mod of the product's own module. The staging folders that Kubernetes' one refers to are not
 * in the published zip; each is published as a module of its own, 1.36.3 as v0.36.3.
 */
export function renderGoMod(product: Product, upstreamGoMod: string): string {
  const staging = stagingModules(upstreamGoMod);
  const stagingVersion = `v0.${product.version.replace(/^\d+\./, '')}`;
  const replace = staging.map((name) => `\t${name} => ${name} ${stagingVersion}\n`).join('');
  const block = replace === '' ? '' : `\nreplace (\n${replace})\n`;
  return `module kilit.dev/cluster/${product.name}\n\ngo 1.26.0\n\nrequire ${product.module} v${product.version}\n${block}`;
}

export function renderToolsGo(product: Product): string {
  const imports = Object.values(product.binaries)
    .map((path) => `\t_ "${path}"\n`)
    .join('');
  return `//go:build tools\n\n// Package tools names what the cluster harness builds, so that go.mod keeps it.\npackage tools\n\nimport (\n${imports})\n`;
}
