/** The chart as Helm renders it, without a cluster. */
import { join } from 'node:path';
import { ensureBinaries } from '../cluster/binaries/build.ts';
import { helm as pinned } from '../cluster/binaries/go-modules.ts';
import { findCommand, run } from '../cluster/exec.ts';
import { repositoryRoot } from '../cluster/paths.ts';

export interface RenderOptions {
  /** As `helm --set`. */
  readonly set?: readonly string[];
  /** @default the oldest that the chart takes */
  readonly kubeVersion?: string;
  readonly release?: string;
  readonly namespace?: string;
  /** Whether to render the Pods of `helm test` too. @default false */
  readonly tests?: boolean;
}

/** Helm of the PATH, or the one that the cluster harness builds. */
async function helmPath(): Promise<string> {
  return findCommand('helm') ?? (await ensureBinaries(pinned, console.error)).helm ?? 'helm';
}

/** Rendered YAML documents, each with a comment that names its template. Throws with Helm's own words. */
export async function renderChart(options: RenderOptions = {}): Promise<string> {
  const { set = [], kubeVersion = '1.36.0', release = 'kilit', namespace = 'kilit-system', tests = false } = options;
  const args = [
    'template',
    release,
    join(repositoryRoot, 'charts', 'kilit'),
    `--namespace=${namespace}`,
    `--kube-version=${kubeVersion}`,
    ...set.flatMap((value) => ['--set', value]),
    ...(tests ? [] : ['--skip-tests']),
  ];
  return (await run(await helmPath(), args)).stdout;
}
