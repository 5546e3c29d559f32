import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { repositoryRoot } from '../../tools/cluster/paths.ts';
import { renderChart } from '../../tools/generate/helm.ts';

describe('the chart', () => {
  test.each(['1.35.4', '1.30.0'])('refuses Kubernetes %s', async (kubeVersion) => {
    await expect(renderChart({ kubeVersion })).rejects.toThrow(
      `chart requires kubeVersion: >=1.36.0-0 which is incompatible with Kubernetes v${kubeVersion}`,
    );
  });

  test.each(['1.36.0', '1.36.3-gke.1', '1.37.2+k3s1'])('takes Kubernetes %s', async (kubeVersion) => {
    await expect(renderChart({ kubeVersion })).resolves.toContain('kind: DistributedLock');
  });

  test('says why, to tools that do not read kubeVersion', async () => {
    const helpers = await readFile(join(repositoryRoot, 'charts/kilit/templates/_helpers.tpl'), 'utf8');
    expect(helpers).toContain('kilit needs Kubernetes 1.36 or newer on every node');
  });
});
