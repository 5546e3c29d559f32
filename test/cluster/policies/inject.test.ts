/**
 * What the injection makes of Pods, on the real API server.
 *
 * Each case is a report against some injector: an automounted token that is not there (vault-k8s#601), a guessed path
 * (#335), shareProcessNamespace switched off (#436), the restricted profile or a read-only root broken
 * (consul-k8s#4441, dapr#5259), others' containers removed (istio#54562), nothing injected at all
 * (opentelemetry-operator#1955).
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { stringify } from 'yaml';
import { type Container, container, envOf, initContainer, inject, mountOf, type Pod } from './pods.ts';
import { aPod, openWorld, podPath, until, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld('inject');
});
afterAll(() => world?.[Symbol.asyncDispose]());

const TOKEN_ENV = {
  name: 'FENCING_TOKEN',
  valueFrom: { fileKeyRef: { volumeName: 'kilit-run', path: 'env', key: 'FENCING_TOKEN', optional: false } },
};
const SOCKET_ENV = { name: 'KILIT_SOCKET', value: '/run/kilit/sock' };
const RUN_MOUNT = { name: 'kilit-run', mountPath: '/run/kilit', readOnly: true };
const INFO_MOUNT = { name: 'kilit-info', mountPath: '/etc/kilit', readOnly: true };

const names = (containers: readonly { readonly name: string }[]) => containers.map(({ name }) => name);
const main = (change: Partial<Container> = {}) => ({ name: 'main', image: 'example/main:1', ...change });
const spec = (change: object) => aPod({ spec: change });
const annotated = (annotations: Record<string, string>, change: object = {}) =>
  aPod({ metadata: { name: 'probe', labels: { 'kilit.dev/lock': 'billing' }, annotations }, spec: change });

function expectGated(one: Container): void {
  expect(one.env?.slice(0, 2)).toEqual([TOKEN_ENV, SOCKET_ENV]);
  expect(one.volumeMounts).toEqual(expect.arrayContaining([RUN_MOUNT, INFO_MOUNT]));
}

describe('the injection', () => {
  test('makes of a minimal Pod what the golden file shows', async () => {
    // An automounted token would add a volume of a random name.
    const { metadata, spec: made } = await inject(world, spec({ automountServiceAccountToken: false }));
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
    const pod = await inject(world, spec({ initContainers }));
    expect(names(pod.spec.initContainers)).toEqual(['kilit-reset', 'kilit', 'migrate', 'logs']);
    for (const name of ['migrate', 'logs']) expectGated(initContainer(pod, name));
    expectGated(container(pod));
  });

  test('gates every container of several', async () => {
    const pod = await inject(world, spec({ containers: [main(), main({ name: 'second' }), main({ name: 'third' })] }));
    expect(names(pod.spec.containers)).toEqual(['main', 'second', 'third']);
    for (const one of pod.spec.containers) expectGated(one);
  });

  test("leaves a Pod's own probes as they are, and adds none", async () => {
    const probe = { httpGet: { path: '/', port: 80, scheme: 'HTTP' }, periodSeconds: 7 };
    const probes = { startupProbe: probe, livenessProbe: probe, readinessProbe: probe };
    const pod = await inject(world, spec({ containers: [main({ ...probes })] }));
    expect(container(pod)).toMatchObject(probes);
    expect(container(await inject(world))).not.toHaveProperty('startupProbe');
  });

  test('needs no automounted token, and mounts its own into the sidecar only', async () => {
    const pod = await inject(world, spec({ automountServiceAccountToken: false }));
    expect(mountOf(initContainer(pod, 'kilit'), 'kilit-api')).toEqual({
      name: 'kilit-api',
      mountPath: '/var/run/secrets/kilit.dev',
      readOnly: true,
    });
    expect(mountOf(initContainer(pod, 'kilit-reset'), 'kilit-api')).toBeUndefined();
    expect(mountOf(container(pod), 'kilit-api')).toBeUndefined();
    expect(names(pod.spec.volumes)).toEqual(['kilit-run', 'kilit-info', 'kilit-api']);
  });

  test('leaves an automounted token where it is', async () => {
    const pod = await inject(world);
    const automounted = expect.objectContaining({ mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' });
    expect(container(pod).volumeMounts).toContainEqual(automounted);
    // The API server asks its ServiceAccount plugin again after the injection, so the sidecar has it too; it does not use it.
    expect(initContainer(pod, 'kilit').volumeMounts).toContainEqual(automounted);
  });

  test('passes the restricted Pod Security Standard', async () => {
    const labels = {
      'pod-security.kubernetes.io/enforce': 'restricted',
      'pod-security.kubernetes.io/enforce-version': 'latest',
    };
    await using namespace = await world.kube.namespace('restricted', labels);
    await serviceAccount(namespace.name);
    const securityContext = {
      runAsNonRoot: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    };
    const good = spec({ containers: [main({ securityContext })] });
    expectGated(container(await inject(world, good, namespace.name)));
    await expect(inject(world, aPod(), namespace.name)).rejects.toThrow(
      /violates PodSecurity.*container "main" must set/,
    );
  });

  test('keeps a read-only root, and has one', async () => {
    const pod = await inject(
      world,
      spec({ containers: [main({ securityContext: { readOnlyRootFilesystem: true } })] }),
    );
    for (const one of [container(pod), initContainer(pod, 'kilit'), initContainer(pod, 'kilit-reset')]) {
      expect(one.securityContext).toMatchObject({ readOnlyRootFilesystem: true });
    }
  });

  test("runs under its own UID beside a Pod's other one", async () => {
    const securityContext = { runAsUser: 0, runAsGroup: 0, fsGroup: 2000, runAsNonRoot: false };
    const pod = await inject(world, spec({ securityContext }));
    expect(pod.spec.securityContext).toEqual(securityContext);
    expect(initContainer(pod, 'kilit').securityContext).toMatchObject({
      runAsUser: 65532,
      runAsGroup: 65532,
      runAsNonRoot: true,
    });
  });

  test('leaves shareProcessNamespace, priority, tolerations, affinity, DNS and service account as they are', async () => {
    const kept = {
      shareProcessNamespace: true,
      hostname: 'h',
      serviceAccountName: 'default',
      dnsPolicy: 'Default',
      nodeSelector: { disk: 'ssd' },
      affinity: { nodeAffinity: {} },
      restartPolicy: 'Never',
      terminationGracePeriodSeconds: 5,
    };
    expect((await inject(world, spec(kept))).spec).toMatchObject(kept);
  });

  test('stands behind the proxies of a mesh and before everything else', async () => {
    const initContainers = [
      { name: 'istio-init', image: 'example/istio:1' },
      { name: 'istio-proxy', image: 'example/istio:1', restartPolicy: 'Always' },
      { name: 'migrate', image: 'example/migrate:1' },
    ];
    const pod = await inject(world, spec({ initContainers }));
    expect(names(pod.spec.initContainers)).toEqual(['istio-init', 'istio-proxy', 'kilit-reset', 'kilit', 'migrate']);
    expect(initContainer(pod, 'istio-proxy').env).toBeUndefined();
    expectGated(initContainer(pod, 'migrate'));
  });

  test('stands last where there is nothing but proxies of a mesh', async () => {
    const initContainers = [{ name: 'istio-proxy', image: 'example/istio:1', restartPolicy: 'Always' }];
    const pod = await inject(world, spec({ initContainers }));
    expect(names(pod.spec.initContainers)).toEqual(['istio-proxy', 'kilit-reset', 'kilit']);
  });

  test.each([
    { what: 'nothing', before: undefined, after: '9911' },
    { what: 'an empty list', before: '', after: '9911' },
    { what: 'other ports', before: '8080,8443', after: '8080,8443,9911' },
    { what: 'its port', before: '8080, 9911', after: '8080, 9911' },
    { what: 'a port that begins like its own', before: '99110', after: '99110,9911' },
  ])('takes its port out of a mesh where the annotation holds $what', async ({ before, after }) => {
    const keys = ['traffic.sidecar.istio.io/excludeInboundPorts', 'config.linkerd.io/skip-inbound-ports'];
    const own = before === undefined ? {} : Object.fromEntries(keys.map((key) => [key, before]));
    const pod = await inject(world, annotated({ ...own, note: 'mine' }));
    for (const key of keys) expect(pod.metadata.annotations?.[key]).toBe(after);
    expect(pod.metadata.annotations?.note).toBe('mine');
  });

  test('works with a generated name', async () => {
    const pod = await inject(
      world,
      aPod({ metadata: { name: undefined, generateName: 'job-', labels: { 'kilit.dev/lock': 'billing' } } }),
    );
    expect(pod.metadata.name).toMatch(/^job-\w{5}$/);
    expectGated(container(pod));
  });

  test('fits a quota that requires requests and limits of CPU and memory', async () => {
    await using namespace = await world.kube.namespace('quota');
    await serviceAccount(namespace.name);
    const path = `/api/v1/namespaces/${namespace.name}/resourcequotas`;
    const hard = { 'requests.cpu': '1', 'requests.memory': '1Gi', 'limits.cpu': '2', 'limits.memory': '2Gi' };
    await world.kube.must('POST', path, { body: { metadata: { name: 'all' }, spec: { hard } } });
    await until(
      'the quota',
      async () =>
        (await world.kube.must('GET', `${path}/all`)).status !== undefined &&
        hasHard(await world.kube.must('GET', `${path}/all`)),
    );
    const resources = { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '200m', memory: '64Mi' } };
    expectGated(container(await inject(world, spec({ containers: [main({ resources })] }), namespace.name)));
    await expect(inject(world, aPod(), namespace.name)).rejects.toThrow(/must specify limits\.cpu for: main/);
  });

  test.each([
    { was: 'BestEffort', resources: {}, is: 'Burstable' },
    { was: 'Burstable', resources: { requests: { cpu: '1' } }, is: 'Burstable' },
    { was: 'Guaranteed', resources: { limits: { cpu: '1', memory: '1Gi' } }, is: 'Guaranteed' },
    {
      was: 'Guaranteed',
      resources: { limits: { cpu: '1000m', memory: '1024Mi' }, requests: { cpu: '1', memory: '1Gi' } },
      is: 'Guaranteed',
    },
  ])('makes of a $was Pod ($resources) a $is one', async ({ resources, is }) => {
    const pod = await inject(world, spec({ containers: [main({ resources })] }));
    expect(pod.status?.qosClass).toBe(is);
    const { requests, limits } = initContainer(pod, 'kilit').resources ?? {};
    expect(limits).toEqual({ cpu: '200m', memory: '128Mi' });
    expect(requests).toEqual(is === 'Guaranteed' ? limits : { cpu: '5m', memory: '32Mi' });
  });

  test('takes nothing for itself in a Pod that declares resources as a whole', async () => {
    const whole = { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1', memory: '1Gi' } };
    const pod = await inject(world, spec({ resources: whole, containers: [main({ resources: whole })] }));
    expect(pod.status?.qosClass).toBe('Guaranteed');
    expect(pod.spec.resources).toEqual(whole);
    expect(initContainer(pod, 'kilit').resources).toEqual({});
  });

  test('keeps env, envFrom and volume mounts of a container, after its own env', async () => {
    const env = [{ name: 'ARGS', value: '--token=$(FENCING_TOKEN)' }];
    const envFrom = [{ configMapRef: { name: 'settings' } }];
    const volumeMounts = [{ name: 'data', mountPath: '/data' }];
    const pod = await inject(
      world,
      spec({ containers: [main({ env, envFrom, volumeMounts })], volumes: [{ name: 'data', emptyDir: {} }] }),
    );
    const { env: after, envFrom: from, volumeMounts: mounts } = container(pod);
    expect(after).toEqual([TOKEN_ENV, SOCKET_ENV, ...env]);
    expect(from).toEqual(envFrom);
    expect(names(mounts ?? []).slice(0, 3)).toEqual(['data', expect.stringMatching(/^kube-api-access/), 'kilit-run']);
    expect(names(pod.spec.volumes)[0]).toBe('data');
  });

  test('gives a standby its socket and files and no token', async () => {
    const pod = await inject(world, annotated({ 'kilit.dev/mode': 'standby' }));
    expect(container(pod).env).toEqual([SOCKET_ENV]);
    expect(container(pod).volumeMounts).toEqual(expect.arrayContaining([RUN_MOUNT, INFO_MOUNT]));
    expect(envOf(initContainer(pod, 'kilit'), 'KILIT_MODE')?.value).toBe('standby');
    expect(envOf(initContainer(pod, 'kilit-reset'), 'KILIT_MODE')?.value).toBe('standby');
  });

  test('listens on the port that the Pod chose', async () => {
    const pod = await inject(world, annotated({ 'kilit.dev/port': '7000' }));
    const sidecar = initContainer(pod, 'kilit');
    expect(envOf(sidecar, 'KILIT_PORT')?.value).toBe('7000');
    expect(sidecar.startupProbe?.httpGet).toMatchObject({ path: '/started', port: 7000 });
    expect(sidecar.ports).toEqual([{ name: 'kilit', containerPort: 7000, protocol: 'TCP' }]);
    expect(pod.metadata.annotations?.['config.linkerd.io/skip-inbound-ports']).toBe('7000');
  });

  test('tells the scheduler of its port where the network is the node’s', async () => {
    const pod = await inject(world, annotated({ 'kilit.dev/port': '7000' }, { hostNetwork: true }));
    expect(initContainer(pod, 'kilit').ports).toEqual([
      { name: 'kilit', containerPort: 7000, hostPort: 7000, protocol: 'TCP' },
    ]);
  });

  test.each([
    { grace: 0, lifetime: 3600 },
    { grace: 600, lifetime: 3600 },
    { grace: 601, lifetime: 3605 },
    { grace: 86_400, lifetime: 432_600 },
    { grace: 4_000_000_000, lifetime: 4_000_000_000 },
  ])('takes a token of $lifetime s for a grace period of $grace s', async ({ grace, lifetime }) => {
    const pod = await inject(world, spec({ terminationGracePeriodSeconds: grace }));
    const api = pod.spec.volumes.find(({ name }) => name === 'kilit-api');
    expect(api?.projected?.sources[0]?.serviceAccountToken).toEqual({ path: 'token', expirationSeconds: lifetime });
  });

  test('does nothing to a Pod without the label', async () => {
    const pod = await inject(world, aPod({ metadata: { name: 'probe', labels: { app: 'x' } } }));
    expect(pod.spec.initContainers).toBeUndefined();
    expect(container(pod).env).toBeUndefined();
    expect(pod.metadata.annotations).toBeUndefined();
  });

  test('stays within the cost that the API server allows, for forty containers of fifty variables', async () => {
    const env = Array.from({ length: 50 }, (_, i) => ({ name: `V${i}`, value: 'x'.repeat(50) }));
    const many = (prefix: string) => Array.from({ length: 20 }, (_, i) => main({ name: `${prefix}${i}`, env }));
    const pod = await inject(world, spec({ containers: many('c'), initContainers: many('i') }));
    for (const one of [...pod.spec.containers, ...pod.spec.initContainers.slice(2)]) expectGated(one);
  });

  test('gates a container that another admission plugin adds afterwards', async () => {
    await using _ = await containerAdder();
    const pod = await inject(
      world,
      aPod({ metadata: { name: 'probe', labels: { 'kilit.dev/lock': 'billing', 'test/add': 'yes' } } }),
    );
    expect(names(pod.spec.containers)).toEqual(['main', 'late']);
    expectGated(container(pod, 1));
    expect(names(pod.spec.initContainers)).toEqual(['kilit-reset', 'kilit']);
  });

  test('reaches the Pods that a controller makes', async () => {
    const deployments = `/apis/apps/v1/namespaces/${world.namespace}/deployments`;
    const labels = { app: 'made', 'kilit.dev/lock': 'billing' };
    const template = { metadata: { labels }, spec: { schedulerName: 'nobody', containers: [main()] } };
    const body = {
      metadata: { name: 'made' },
      spec: { replicas: 1, selector: { matchLabels: { app: 'made' } }, template },
    };
    await world.kube.must('POST', deployments, { body });
    const list = `${podPath(world.namespace)}?labelSelector=app%3Dmade`;
    const items = async () => (await world.kube.must('GET', list)).items as Pod[];
    await until('the Pod of the Deployment', async () => (await items()).length > 0);
    const [pod] = await items();
    expect(names(pod?.spec.initContainers ?? [])).toEqual(['kilit-reset', 'kilit']);
  });
});

const hasHard = (quota: { readonly status?: unknown }): boolean =>
  (quota.status as { hard?: unknown }).hard !== undefined;

async function serviceAccount(namespace: string): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
  await until('ServiceAccount default', async () => (await world.kube.ask('GET', path)).status === 200);
}

/** A mutating policy that runs after kilit's and adds a container, as a mesh without native sidecars does. */
async function containerAdder(): Promise<AsyncDisposable> {
  const group = '/apis/admissionregistration.k8s.io/v1';
  const metadata = { name: 'zz-kilit-test-adds-container' };
  const expression =
    "object.spec.containers.exists(c, c.name == 'late') ? [] : [JSONPatch{op: 'add', path: '/spec/containers/-', value: Object.spec.containers{name: 'late', image: 'example/late:1'}}]";
  const resourceRules = [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['pods'] }];
  await world.kube.must('POST', `${group}/mutatingadmissionpolicies`, {
    body: {
      metadata,
      spec: {
        reinvocationPolicy: 'IfNeeded',
        matchConstraints: { resourceRules, objectSelector: { matchLabels: { 'test/add': 'yes' } } },
        mutations: [{ patchType: 'JSONPatch', jsonPatch: { expression } }],
      },
    },
  });
  await world.kube.must('POST', `${group}/mutatingadmissionpolicybindings`, {
    body: { metadata, spec: { policyName: metadata.name } },
  });
  const probe = aPod({ metadata: { name: 'probe', labels: { 'test/add': 'yes' } } });
  await until('the second policy', async () => (await inject(world, probe)).spec.containers.length === 2);
  return {
    async [Symbol.asyncDispose]() {
      await world.kube.ask('DELETE', `${group}/mutatingadmissionpolicybindings/${metadata.name}`);
      await world.kube.ask('DELETE', `${group}/mutatingadmissionpolicies/${metadata.name}`);
    },
  };
}
