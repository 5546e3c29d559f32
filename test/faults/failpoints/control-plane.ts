/** Faults of the API server and of etcd: paused, killed, cut off from each other, or with a bad temper. */
import { type ClusterFault, type Failpoint, type Heal } from './failpoint.ts';
import { loseSome } from './lose.ts';
import { openProxy, type Temper } from './proxy.ts';

const freeze = (component: string, name: string): Failpoint => ({
  name: `SIGSTOP ${name}`,
  level: 'cluster',
  lasts: 'over-lease',
  async inflict(fault) {
    const program = fault.cluster.component(component);
    await program.pause();
    await loseSome(fault);
    return () => program.resume();
  },
});

const kill = (component: string, name: string): Failpoint => ({
  name: `SIGKILL ${name}`,
  level: 'cluster',
  lasts: 'over-lease',
  async inflict(fault) {
    const program = fault.cluster.component(component);
    await program.kill();
    await loseSome(fault);
    return () => program.restart();
  },
});

async function cutEtcd(fault: ClusterFault): Promise<Heal> {
  await fault.cluster.cutEtcd();
  await loseSome(fault);
  return () => fault.cluster.healEtcd();
}

const worse = (temper: Temper, name: string): Failpoint => ({
  name: `API server ${name}`,
  level: 'cluster',
  lasts: 'over-lease',
  async inflict(fault) {
    const proxy = await openProxy(fault.cluster, temper, fault.random);
    await fault.cluster.divertApiServer(proxy.port);
    await loseSome(fault);
    return async () => {
      await fault.cluster.restoreApiServer();
      await proxy[Symbol.asyncDispose]();
    };
  },
});

export const CONTROL_PLANE_FAILPOINTS: readonly Failpoint[] = [
  freeze('kube-apiserver', 'API server'),
  kill('kube-apiserver', 'API server'),
  freeze('etcd', 'etcd'),
  kill('etcd', 'etcd'),
  { name: 'API server cut from etcd', level: 'cluster', lasts: 'over-lease', inflict: cutEtcd },
  worse('late', 'late'),
  worse('errors', 'with errors'),
  worse('silent', 'accepting and never answering'),
];
