/** What the injection makes of the containers of Pods, on the real API server. */
import { describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { useWorld } from './attempts.ts';
import { annotated, expectGated, INFO_MOUNT, main, names, RUN_MOUNT, SOCKET_ENV, spec, TOKEN_ENV } from './injected.ts';
import { container, envOf, initContainer, inject, type Pod } from './pods.ts';
import { aPod, openWorld, podPath, until } from './world.ts';

const at = useWorld(() => openWorld('inject'));

describe('the injection', () => {
  test('makes of a minimal Pod what the golden file shows', async () => {
    // An automounted token would add a volume of a random name.
    const { metadata, spec: made } = await inject(at.world, spec({ automountServiceAccountToken: false }));
    const { labels, annotations } = metadata;
    const { initContainers, containers, volumes, ...rest } = made;
    const shown = { metadata: { labels, annotations }, spec: { initContainers, containers, volumes } };
    await expect(stringify(shown, { aliasDuplicateObjects: false })).toMatchFileSnapshot('golden/injected-pod.yaml');
    expect(rest).toMatchObject({ restartPolicy: 'Always', securityContext: {}, terminationGracePeriodSeconds: 30 });
  });

  test("gates a Pod's own init containers and native sidecars, in their order", async () => {
    const initContainers = [
      { name: 'migrate', image: 'example/migrate:1' },
      { name: 'logs', image: 'example/logs:1', restartPolicy: 'Always' },
    ];
    const pod = await inject(at.world, spec({ initContainers }));
    expect(names(pod.spec.initContainers)).toEqual(['kilit-reset', 'kilit', 'migrate', 'logs']);
    for (const name of ['migrate', 'logs']) expectGated(initContainer(pod, name));
    expectGated(container(pod));
  });

  test('gates every container of several', async () => {
    const pod = await inject(
      at.world,
      spec({ containers: [main(), main({ name: 'second' }), main({ name: 'third' })] }),
    );
    expect(names(pod.spec.containers)).toEqual(['main', 'second', 'third']);
    for (const one of pod.spec.containers) expectGated(one);
  });

  test("leaves a Pod's own probes as they are, and adds none", async () => {
    const probe = { httpGet: { path: '/', port: 80, scheme: 'HTTP' }, periodSeconds: 7 };
    const probes = { startupProbe: probe, livenessProbe: probe, readinessProbe: probe };
    const pod = await inject(at.world, spec({ containers: [main({ ...probes })] }));
    expect(container(pod)).toMatchObject(probes);
    expect(container(await inject(at.world))).not.toHaveProperty('startupProbe');
  });

  test('works with a generated name', async () => {
    const pod = await inject(
      at.world,
      aPod({ metadata: { name: undefined, generateName: 'job-', labels: { 'kilit.dev/lock': 'billing' } } }),
    );
    expect(pod.metadata.name).toMatch(/^job-\w{5}$/);
    expectGated(container(pod));
  });

  test('keeps env, envFrom and volume mounts of a container, after its own env', async () => {
    const env = [{ name: 'ARGS', value: '--token=$(FENCING_TOKEN)' }];
    const envFrom = [{ configMapRef: { name: 'settings' } }];
    const volumeMounts = [{ name: 'data', mountPath: '/data' }];
    const pod = await inject(
      at.world,
      spec({ containers: [main({ env, envFrom, volumeMounts })], volumes: [{ name: 'data', emptyDir: {} }] }),
    );
    const { env: after, envFrom: from, volumeMounts: mounts } = container(pod);
    expect(after).toEqual([TOKEN_ENV, SOCKET_ENV, ...env]);
    expect(from).toEqual(envFrom);
    expect(names(mounts ?? []).slice(0, 3)).toEqual(['data', expect.stringMatching(/^kube-api-access/), 'kilit-run']);
    expect(names(pod.spec.volumes)[0]).toBe('data');
  });

  test('gives a standby its socket and files and no token', async () => {
    const pod = await inject(at.world, annotated({ 'kilit.dev/mode': 'standby' }));
    expect(container(pod).env).toEqual([SOCKET_ENV]);
    expect(container(pod).volumeMounts).toEqual(expect.arrayContaining([RUN_MOUNT, INFO_MOUNT]));
    expect(envOf(initContainer(pod, 'kilit'), 'KILIT_MODE')?.value).toBe('standby');
    expect(envOf(initContainer(pod, 'kilit-reset'), 'KILIT_MODE')?.value).toBe('standby');
  });

  test('listens on the port that the Pod chose', async () => {
    const pod = await inject(at.world, annotated({ 'kilit.dev/port': '7000' }));
    const sidecar = initContainer(pod, 'kilit');
    expect(envOf(sidecar, 'KILIT_PORT')?.value).toBe('7000');
    expect(sidecar.startupProbe?.httpGet).toMatchObject({ path: '/started', port: 7000 });
    expect(sidecar.ports).toEqual([{ name: 'kilit', containerPort: 7000, protocol: 'TCP' }]);
    expect(pod.metadata.annotations?.['config.linkerd.io/skip-inbound-ports']).toBe('7000');
  });

  test('does nothing to a Pod without the label', async () => {
    const pod = await inject(at.world, aPod({ metadata: { name: 'probe', labels: { app: 'x' } } }));
    expect(pod.spec.initContainers).toBeUndefined();
    expect(container(pod).env).toBeUndefined();
    expect(pod.metadata.annotations).toBeUndefined();
  });

  test('stays within the cost that the API server allows, for forty containers of fifty variables', async () => {
    const env = Array.from({ length: 50 }, (_, i) => ({ name: `V${i}`, value: 'x'.repeat(50) }));
    const many = (prefix: string) => Array.from({ length: 20 }, (_, i) => main({ name: `${prefix}${i}`, env }));
    const pod = await inject(at.world, spec({ containers: many('c'), initContainers: many('i') }));
    for (const one of [...pod.spec.containers, ...pod.spec.initContainers.slice(2)]) expectGated(one);
  });

  test('gates a container that another admission plugin adds afterwards', async () => {
    await using _ = await containerAdder();
    const pod = await inject(
      at.world,
      aPod({ metadata: { name: 'probe', labels: { 'kilit.dev/lock': 'billing', 'test/add': 'yes' } } }),
    );
    expect(names(pod.spec.containers)).toEqual(['main', 'late']);
    expectGated(container(pod, 1));
    expect(names(pod.spec.initContainers)).toEqual(['kilit-reset', 'kilit']);
  });

  test('reaches the Pods that a controller makes', async () => {
    const deployments = `/apis/apps/v1/namespaces/${at.world.namespace}/deployments`;
    const labels = { app: 'made', 'kilit.dev/lock': 'billing' };
    const template = { metadata: { labels }, spec: { schedulerName: 'nobody', containers: [main()] } };
    const body = {
      metadata: { name: 'made' },
      spec: { replicas: 1, selector: { matchLabels: { app: 'made' } }, template },
    };
    await at.world.kube.must('POST', deployments, { body });
    const list = `${podPath(at.world.namespace)}?labelSelector=app%3Dmade`;
    const items = async () => (await at.world.kube.must('GET', list)).items as Pod[];
    await until('the Pod of the Deployment', async () => (await items()).length > 0);
    const [pod] = await items();
    expect(names(pod?.spec.initContainers ?? [])).toEqual(['kilit-reset', 'kilit']);
  });
});

/** A mutating policy that runs after kilit's and adds a container, as a mesh without native sidecars does. */
async function containerAdder(): Promise<AsyncDisposable> {
  const group = '/apis/admissionregistration.k8s.io/v1';
  const metadata = { name: 'zz-kilit-test-adds-container' };
  const expression =
    "object.spec.containers.exists(c, c.name == 'late') ? [] : [JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'late', image: 'example/late:1'}}]";
  const resourceRules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }];
  await at.world.kube.must('POST', `${group}/mutatingadmissionpolicies`, {
    body: {
      metadata,
      spec: {
        reinvocationPolicy: 'IfNeeded',
        matchConstraints: { resourceRules, objectSelector: { matchLabels: { 'test/add': 'yes' } } },
        mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
      },
    },
  });
  await at.world.kube.must('POST', `${group}/mutatingadmissionpolicybindings`, {
    body: { metadata, spec: { policyName: metadata.name } },
  });
  const probe = aPod({ metadata: { name: 'probe', labels: { 'test/add': 'yes' } } });
  await until('the second policy', async () => (await inject(at.world, probe)).spec.containers.length === 2);
  return {
    async [Symbol.asyncDispose]() {
      await at.world.kube.ask('DELETE', `${group}/mutatingadmissionpolicybindings/${metadata.name}`);
      await at.world.kube.ask('DELETE', `${group}/mutatingadmissionpolicies/${metadata.name}`);
    },
  };
}
