import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { repositoryRoot } from '../../tools/cluster/paths.ts';
import { renderChart } from '../../tools/generate/helm.ts';
import { one, type Rendered, renderObjects } from './rendered.ts';

let objects: readonly Rendered[];
beforeAll(async () => {
  objects = await renderObjects({ set: ['image.tag=dev', 'fencedLeases.enabled=true'] });
});

/** Policies that warn and refuse nothing. */
const WARNING: ReadonlySet<string> = new Set(['kilit-misplaced-label', 'kilit-gated-rollout']);

describe('the objects of the chart', () => {
  test('stand one to a file', async () => {
    const templates = join(repositoryRoot, 'charts/kilit/templates');
    for (const file of await readdir(templates, { recursive: true })) {
      if (!file.endsWith('.yaml')) continue;
      const text = await readFile(join(templates, file), 'utf8');
      const several = (text.match(/^kind:/gm)?.length ?? 0) > 1;
      expect({ file, several }).toEqual({ file, several: false });
    }
  });

  test('carry the recommended labels', () => {
    for (const { kind, metadata } of objects) {
      const keys = Object.keys(metadata.labels ?? {});
      for (const key of ['name', 'component', 'part-of']) {
        expect(keys, `${kind}/${metadata.name}`).toContain(`app.kubernetes.io/${key}`);
      }
    }
  });

  test('the Deployment is what the golden file shows', async () => {
    const { spec } = one(objects, 'Deployment', 'kilit');
    await expect(stringify(spec)).toMatchFileSnapshot('golden/deployment.yaml');
  });

  test('the rights of the operator are what the golden file shows', async () => {
    const rights = [
      one(objects, 'ClusterRole', 'kilit'),
      one(objects, 'ClusterRole', 'kilit-view'),
      one(objects, 'ClusterRole', 'kilit-edit'),
      one(objects, 'ClusterRole', 'kilit-break'),
    ];
    const shown = rights.map(({ kind, metadata, ...rest }) => ({ kind, name: metadata.name, rules: rest.rules }));
    await expect(stringify(shown)).toMatchFileSnapshot('golden/rights.yaml');
  });

  test('the operator holds what it grants to the sidecars', () => {
    const { rules } = one(objects, 'ClusterRole', 'kilit') as unknown as { rules: readonly Rule[] };
    const holds = (group: string, resource: string, verb: string) =>
      rules.some((r) => r.apiGroups.includes(group) && r.resources.includes(resource) && r.verbs.includes(verb));
    for (const verb of ['get', 'update', 'list', 'watch'])
      expect(holds('coordination.k8s.io', 'leases', verb)).toBe(true);
    expect(holds('events.k8s.io', 'events', 'create')).toBe(true);
  });

  test('every policy has its binding, and every refusal is enforced', () => {
    const of = (kind: string) => objects.filter((object) => object.kind === kind).map(({ metadata }) => metadata.name);
    for (const kind of ['ValidatingAdmissionPolicy', 'MutatingAdmissionPolicy']) {
      expect(of(`${kind}Binding`).toSorted()).toEqual(of(kind).toSorted());
    }
    const actions = objects
      .filter(({ kind }) => kind === 'ValidatingAdmissionPolicyBinding')
      .map(({ metadata, spec }) => [metadata.name, (spec as { validationActions: unknown }).validationActions]);
    expect(Object.fromEntries(actions)).toEqual(
      Object.fromEntries(actions.map(([name]) => [name, [WARNING.has(String(name)) ? 'Warn' : 'Deny']])),
    );
  });

  test('no policy fails open but those that warn', () => {
    for (const { kind, metadata, spec } of objects) {
      if (!kind.endsWith('AdmissionPolicy')) continue;
      const failurePolicy = WARNING.has(metadata.name) ? 'Ignore' : 'Fail';
      expect({ name: metadata.name, spec }).toMatchObject({ spec: { failurePolicy } });
    }
  });

  test('the CRD outlives the chart, and stays away where it is not wanted', async () => {
    const crd = one(objects, 'CustomResourceDefinition', 'distributedlocks.kilit.dev');
    expect(crd.metadata.annotations).toEqual({ 'helm.sh/resource-policy': 'keep' });
    const without = await renderObjects({ set: ['crds.enabled=false'] });
    expect(without.map(({ kind }) => kind)).not.toContain('CustomResourceDefinition');
  });

  test('know the operator by the release and its namespace, not by a fixed name', async () => {
    const text = await renderChart({
      release: 'locks',
      namespace: 'platform',
      set: ['metrics.serviceMonitor.enabled=true'],
    });
    expect(text).toContain("request.userInfo.username == 'system:serviceaccount:platform:locks'");
    expect(text).not.toContain('kilit-system');
    expect(text).toContain('kind: ServiceMonitor');
  });

  test('a digest wins over the tag, for operator, sidecar and the policy that compares it', async () => {
    const digest = `sha256:${'a'.repeat(64)}`;
    const text = await renderChart({ set: [`image.digest=${digest}`, 'image.tag=old'] });
    expect(
      text.match(/localhost\/kilit[:@][^'" ]+/g)?.filter((image) => image.trim() !== `localhost/kilit@${digest}`),
    ).toEqual([]);
  });

  test('the test Pod asks the Service by the name that its environment gives it', async () => {
    const pod = one(await renderObjects({ tests: true, release: 'my-locks' }), 'Pod', 'my-locks-test-readyz');
    expect(JSON.stringify(pod.spec)).toContain('process.env.MY_LOCKS_SERVICE_HOST');
  });
});

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}
