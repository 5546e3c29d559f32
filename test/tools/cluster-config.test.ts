import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { missingCommands, packagesFor } from '../../tools/cluster/binaries/debian.ts';
import {
  etcd,
  kubernetes,
  renderGoMod,
  renderToolsGo,
  stagingModules,
} from '../../tools/cluster/binaries/go-modules.ts';
import { sharedLibraries } from '../../tools/cluster/images/node-base.ts';
import { kindConfig } from '../../tools/cluster/kind.ts';
import { cniConfig, containerdConfig, kubeconfig, kubeletConfig } from '../../tools/cluster/native/config.ts';
import { encodeStringMessage } from '../../tools/cluster/native/cri.ts';
import { apiServerCommand, etcdCommand, inNetns, kubeletCommand } from '../../tools/cluster/native/flags.ts';
import { clusterLayout, nodeLayout } from '../../tools/cluster/native/layout.ts';

const cluster = clusterLayout({ name: 'dev', index: 2, dir: '/state/dev' });
const node = nodeLayout(cluster, 1);

describe('the configuration of a native cluster', () => {
  it('lets containerd start sandboxes without CAP_SYS_RESOURCE', () => {
    expect(containerdConfig(node)).toContain('restrict_oom_score_adj = true');
  });

  it('keeps all of a node under its folder', () => {
    const paths = containerdConfig(node).match(/"\/[^"]*"/g) ?? [];
    const outside = paths.filter((path) => !path.startsWith('"/state/dev/node1/'));
    expect(outside).toEqual(['"/usr/lib/cni"']);
  });

  it('gives the kubelet its own cgroup and accepts cgroup v1', () => {
    const config = parse(kubeletConfig(cluster, node)) as Record<string, unknown>;
    expect(config).toMatchObject({
      cgroupRoot: '/kilit-dev-node1',
      failCgroupV1: false,
      failSwapOn: false,
      containerRuntimeEndpoint: 'unix:///state/dev/node1/containerd.sock',
    });
    expect(config).not.toHaveProperty('featureGates');
  });

  it('gives Pods addresses of their node', () => {
    expect(cniConfig(node)).toContain('"subnet":"10.102.1.0/24"');
  });

  it('starts the API server on the address of the cluster only', () => {
    const flags = apiServerCommand('kube-apiserver', cluster);
    expect(flags).toContain('--bind-address=10.87.2.1');
    expect(flags).toContain('--service-cluster-ip-range=10.96.32.0/20');
    expect(flags).toContain('--authorization-mode=Node,RBAC');
  });

  it('lets etcd skip syncing unless durability is measured', () => {
    expect(etcdCommand('etcd', cluster, { fsync: false })).toContain('--unsafe-no-fsync');
    expect(etcdCommand('etcd', cluster, { fsync: true })).not.toContain('--unsafe-no-fsync');
  });

  it("starts a node's programs in its network namespace", () => {
    const command = inNetns(node, kubeletCommand('/bin/kubelet', node));
    expect(command.slice(0, 4)).toEqual(['nsenter', '--net=/run/netns/kilit-dev-node1', '--', '/bin/kubelet']);
  });

  it('writes a kubeconfig with everything embedded', () => {
    const [ca, certificate, key] = ['ca', 'crt', 'key'].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer];
    const config = parse(kubeconfig({ cluster: 'dev', server: 'https://10.87.2.1:6443', ca, certificate, key })) as {
      readonly users: readonly { readonly user: object }[];
    };
    expect(config).toMatchObject({ 'current-context': 'kilit-dev' });
    expect(config.users[0]?.user).toEqual({ 'client-certificate-data': 'Y3J0', 'client-key-data': 'a2V5' });
  });
});

describe('the wrapper modules', () => {
  const upstream =
    'module k8s.io/kubernetes\n\nreplace (\n\tk8s.io/api => ./staging/src/k8s.io/api\n\tk8s.io/cri-api => ./staging/src/k8s.io/cri-api\n)\n';

  it('replace every staging folder by its published module', () => {
    expect(stagingModules(upstream)).toEqual(['k8s.io/api', 'k8s.io/cri-api']);
    const goMod = renderGoMod(kubernetes('1.37.2'), upstream);
    expect(goMod).toContain('require k8s.io/kubernetes v1.37.2');
    expect(goMod).toContain('\tk8s.io/cri-api => k8s.io/cri-api v0.37.2');
  });

  it('replace nothing where there is no staging', () => {
    expect(renderGoMod(etcd, 'module go.etcd.io/etcd/server/v3\n')).not.toContain('replace');
  });

  it('stamp the version into the binaries', () => {
    expect(kubernetes('1.37.2').linkerFlags).toContain('gitVersion=v1.37.2');
    expect(kubernetes('1.37.2').linkerFlags).toContain('gitMinor=37');
  });

  it('import what is built', () => {
    expect(renderToolsGo(kubernetes())).toContain('\t_ "k8s.io/kubernetes/cmd/kubelet"\n');
  });
});

describe('Debian packages', () => {
  it('are named once for the commands that are missing', () => {
    const missing = missingCommands((command) =>
      ['ctr', 'containerd'].includes(command) ? undefined : `/bin/${command}`,
    );
    expect(packagesFor(missing)).toEqual(['containerd']);
  });

  it('are none when every command is there', () => {
    expect(missingCommands((command) => command)).toEqual([]);
  });
});

describe('images and kind', () => {
  it('finds each shared library once in the output of ldd', () => {
    const ldd = '\tlinux-vdso.so.1 (0x7ff)\n\tlibm.so.6 => /lib/x/libm.so.6 (0x7f1)\n\t/lib64/ld.so.2 (0x7f2)\n';
    expect(sharedLibraries(ldd)).toEqual(['/lib/x/libm.so.6', '/lib64/ld.so.2']);
  });

  it('adds a worker to the kind manifest for every further node', () => {
    const config = parse(kindConfig('kind: Cluster\nnodes:\n  - role: control-plane\n', 3)) as {
      readonly nodes: object[];
    };
    expect(config.nodes).toEqual([{ role: 'control-plane' }, { role: 'worker' }, { role: 'worker' }]);
  });

  it('encodes a CRI request as gRPC does', () => {
    expect([...encodeStringMessage('ab')]).toEqual([0, 0, 0, 0, 4, 0x0a, 2, 0x61, 0x62]);
  });
});
