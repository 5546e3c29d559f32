/** The command line of `npm run cluster`. Pure: arguments in, a command or a fault out. */
import { parseArgs } from 'node:util';
import { DEFAULT_CLUSTER, KILIT_IMAGE, KUBERNETES_VERSION, MAX_NODES } from './constants.ts';
import type { ProviderName } from './types.ts';
import { nameFault, nodesFault } from './validate.ts';

const ACTIONS = ['up', 'down', 'status', 'logs', 'kubeconfig', 'load-image', 'help'] as const;
const PROVIDERS = ['native', 'kind', 'existing'] as const;
type Action = (typeof ACTIONS)[number];

export interface Command {
  readonly action: Action;
  readonly name: string;
  readonly nodes: number;
  readonly rest: readonly string[];
  readonly env: boolean;
  readonly all: boolean;
  readonly collect?: string;
  readonly provider?: ProviderName;
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly kubernetesVersion?: string;
  readonly fsync?: boolean;
}

export const HELP = `Real Kubernetes clusters for tests and development.

  npm run cluster -- up          bring a cluster up, or extend and repair one; harmless to repeat
  npm run cluster -- down        end it and remove everything it left (--all: every cluster)
  npm run cluster -- status      every cluster, its programs and nodes
  npm run cluster -- logs        the end of a program's log; without a name, which there are
  npm run cluster -- kubeconfig  the path of the administrator's kubeconfig (--env: lines for the shell)
  npm run cluster -- load-image  build ${KILIT_IMAGE} and load it into every node; or other images or archives

Options
  --name NAME                    several clusters can run side by side (default ${DEFAULT_CLUSTER})
  --nodes N                      1 to ${MAX_NODES} (default 1)
  --provider native|kind|existing   default: existing if a kubeconfig is named; kind if Docker or Podman answers;
                                 native on Linux as root: Kubernetes' own programs on this machine
  --kubeconfig FILE, --context C  for provider existing; or KILIT_KUBECONFIG, KILIT_CONTEXT.
                                 Your default kubeconfig is never used.
  --kubernetes-version V         default ${KUBERNETES_VERSION}; native builds it from its Go modules, once
  --fsync                        etcd syncs to disk, for measurements
  --collect DIR                  with logs: copy all logs and objects there

Examples
  npm run cluster -- up --nodes 2
  eval "$(npm run --silent cluster -- kubeconfig --env)"; kubectl get nodes
  npm run cluster -- load-image
  npm run cluster -- logs kube-apiserver
  npm run cluster -- up --name newer --kubernetes-version 1.37.2
  KILIT_KUBECONFIG=$HOME/staging.yaml npm run cluster -- status
  npm run cluster -- down --all
`;

const OPTIONS = {
  name: { type: 'string' },
  nodes: { type: 'string' },
  provider: { type: 'string' },
  kubeconfig: { type: 'string' },
  context: { type: 'string' },
  'kubernetes-version': { type: 'string' },
  fsync: { type: 'boolean' },
  collect: { type: 'string' },
  env: { type: 'boolean' },
  all: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
} as const;

/** The line for the shell after which kubectl finds the cluster; one that the harness runs brings kubectl and helm too. */
export function howToUse(cluster: {
  readonly name: string;
  readonly provider: ProviderName;
  readonly kubeconfigPath: string;
}): string {
  return cluster.provider === 'existing'
    ? `export KUBECONFIG='${cluster.kubeconfigPath}'`
    : `eval "$(npm run --silent cluster -- kubeconfig --name ${cluster.name} --env)"`;
}

/** Throws with all faults in one message. */
export function parseCommand(args: readonly string[], env: Readonly<Record<string, string | undefined>> = {}): Command {
  const { values, positionals } = parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  const [word = 'help', ...rest] = positionals;
  const action = values.help === true ? 'help' : ACTIONS.find((each) => each === word);
  const provider = PROVIDERS.find((each) => each === values.provider);
  const name = values.name ?? DEFAULT_CLUSTER;
  const nodes = Number(values.nodes ?? 1);
  const version = values['kubernetes-version']?.replace(/^v/, '');
  const faults = [
    action === undefined ? `unknown action '${word}'; there are: ${ACTIONS.join(', ')}` : undefined,
    values.provider !== undefined && provider === undefined
      ? `--provider must be one of ${PROVIDERS.join(', ')}, got '${values.provider}'`
      : undefined,
    nameFault(name),
    nodesFault(nodes),
    version !== undefined && !/^1\.\d+\.\d+$/.test(version)
      ? `--kubernetes-version must be like ${KUBERNETES_VERSION}, got '${version}'`
      : undefined,
  ].filter((fault) => fault !== undefined);
  if (faults.length > 0 || action === undefined) throw new Error(faults.join('; '));
  const kubeconfig = values.kubeconfig ?? env['KILIT_KUBECONFIG'];
  const context = values.context ?? env['KILIT_CONTEXT'];
  return {
    action,
    name,
    nodes,
    rest,
    env: values.env === true,
    all: values.all === true,
    ...(values.collect === undefined ? {} : { collect: values.collect }),
    ...(provider === undefined ? {} : { provider }),
    ...(kubeconfig === undefined || kubeconfig === '' ? {} : { kubeconfig }),
    ...(context === undefined || context === '' ? {} : { context }),
    ...(version === undefined ? {} : { kubernetesVersion: version }),
    ...(values.fsync === undefined ? {} : { fsync: values.fsync }),
  };
}
