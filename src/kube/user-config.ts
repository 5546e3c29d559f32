import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { delimiter, join } from 'node:path';
import { KubeConfig } from '@kubernetes/client-node';

/** The cluster that a person has chosen, as kubectl would. */
export interface UserConfig {
  readonly config: KubeConfig;
  readonly server: string;
  readonly context: string;
  /** Of the context. */
  readonly namespace: string | undefined;
}

export interface UserChoice {
  /** `--kubeconfig`. */
  readonly kubeconfig: string | undefined;
  /** `--context`. */
  readonly context: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/**
 * A person's credentials: `--kubeconfig`, else `$KUBECONFIG` (several files are merged), else `~/.kube/config`, else the
 * service account of the Pod that this runs in.
 *
 * For the command line only: the operator never reads a default (`config.ts`).
 *
 * @throws Error that says which file or context is missing.
 */
export function loadUserConfig({ kubeconfig, context, env }: UserChoice): UserConfig {
  const config = read(filesOf(kubeconfig, env));
  // client-node takes a server without TLS, such as `kubectl proxy`, only when told that there is none to verify.
  config.clusters = config.clusters.map((cluster) =>
    cluster.server.startsWith('http://') ? { ...cluster, skipTLSVerify: true } : cluster,
  );
  if (context !== undefined) {
    if (config.getContextObject(context) === null) {
      const names = config.getContexts().map(({ name }) => name);
      throw new Error(`The kubeconfig has no context '${context}'. It has: ${names.join(', ') || 'none'}`);
    }
    config.setCurrentContext(context);
  }
  const server = config.getCurrentCluster()?.server;
  if (server === undefined || server === '') {
    throw new Error(
      'The kubeconfig has no current context. Choose one: --context NAME, or kubectl config use-context NAME',
    );
  }
  const chosen = config.getCurrentContext();
  return { config, server, context: chosen, namespace: config.getContextObject(chosen)?.namespace };
}

function filesOf(kubeconfig: string | undefined, env: UserChoice['env']): readonly string[] {
  if (kubeconfig !== undefined) {
    if (!existsSync(kubeconfig)) throw new Error(`There is no kubeconfig ${kubeconfig}`);
    return [kubeconfig];
  }
  const named = (env.KUBECONFIG ?? '').split(delimiter).filter((path) => path !== '');
  // As kubectl: of several files some may be missing.
  const present = named.filter((path) => existsSync(path));
  if (named.length > 0 && present.length === 0) {
    throw new Error(`There is no file ${named.join(' nor ')}, which $KUBECONFIG names`);
  }
  const home = join(env.HOME ?? homedir(), '.kube', 'config');
  return named.length > 0 ? present : existsSync(home) ? [home] : [];
}

const SERVICE_ACCOUNT_TOKEN = '/var/run/secrets/kubernetes.io/serviceaccount/token';

function read(files: readonly string[]): KubeConfig {
  const config = new KubeConfig();
  const [first, ...others] = files;
  if (first === undefined) {
    if (!existsSync(SERVICE_ACCOUNT_TOKEN)) {
      throw new Error('No cluster is chosen: there is no --kubeconfig, no $KUBECONFIG and no ~/.kube/config');
    }
    config.loadFromCluster();
    return config;
  }
  config.loadFromFile(first);
  for (const path of others) {
    const more = new KubeConfig();
    more.loadFromFile(path);
    // As kubectl: the first file that has a current context decides.
    config.mergeConfig(more, Boolean(config.getCurrentContext()));
  }
  return config;
}
