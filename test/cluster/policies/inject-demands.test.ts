/**
 * How the injection fits into what Pods and namespaces demand, on the real API server.
 *
 * Each case is a report against some injector: an automounted token that is not there (vault-k8s#601), a guessed path
 * (#335), shareProcessNamespace switched off (#436), the restricted profile or a read-only root broken
 * (consul-k8s#4441, dapr#5259), others' containers removed (istio#54562), nothing injected at all
 * (opentelemetry-operator#1955).
 */
import { describe, expect, test } from 'vitest';
import { useWorld } from './attempts.ts';
import { annotated, expectGated, main, names, spec } from './injected.ts';
import { container, initContainer, inject, mountOf } from './pods.ts';
import { aPod, openWorld, until } from './world.ts';

const at = useWorld(() => openWorld('inject'));

describe('the injection', () => {
  test('needs no automounted token, and mounts its own into the sidecar only', async () => {
    const pod = await inject(at.world, spec({ automountServiceAccountToken: false }));
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
    const pod = await inject(at.world);
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
    await using namespace = await at.world.kube.namespace('restricted', labels);
    await serviceAccount(namespace.name);
    const securityContext = {
      runAsNonRoot: true,
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      seccompProfile: { type: 'RuntimeDefault' },
    };
    const good = spec({ containers: [main({ securityContext })] });
    expectGated(container(await inject(at.world, good, namespace.name)));
    await expect(inject(at.world, aPod(), namespace.name)).rejects.toThrow(
      /violates PodSecurity.*container "main" must set/,
    );
  });

  test('keeps a read-only root, and has one', async () => {
    const pod = await inject(
      at.world,
      spec({ containers: [main({ securityContext: { readOnlyRootFilesystem: true } })] }),
    );
    for (const one of [container(pod), initContainer(pod, 'kilit'), initContainer(pod, 'kilit-reset')]) {
      expect(one.securityContext).toMatchObject({ readOnlyRootFilesystem: true });
    }
  });

  test("runs under its own UID beside a Pod's other one", async () => {
    const securityContext = { runAsUser: 0, runAsGroup: 0, fsGroup: 2000, runAsNonRoot: false };
    const pod = await inject(at.world, spec({ securityContext }));
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
    expect((await inject(at.world, spec(kept))).spec).toMatchObject(kept);
  });

  test('stands behind the proxies of a mesh and before everything else', async () => {
    const initContainers = [
      { name: 'istio-init', image: 'example/istio:1' },
      { name: 'istio-proxy', image: 'example/istio:1', restartPolicy: 'Always' },
      { name: 'migrate', image: 'example/migrate:1' },
    ];
    const pod = await inject(at.world, spec({ initContainers }));
    expect(names(pod.spec.initContainers)).toEqual(['istio-init', 'istio-proxy', 'kilit-reset', 'kilit', 'migrate']);
    expect(initContainer(pod, 'istio-proxy').env).toBeUndefined();
    expectGated(initContainer(pod, 'migrate'));
  });

  test('stands last where there is nothing but proxies of a mesh', async () => {
    const initContainers = [{ name: 'istio-proxy', image: 'example/istio:1', restartPolicy: 'Always' }];
    const pod = await inject(at.world, spec({ initContainers }));
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
    const pod = await inject(at.world, annotated({ ...own, note: 'mine' }));
    for (const key of keys) expect(pod.metadata.annotations?.[key]).toBe(after);
    expect(pod.metadata.annotations?.note).toBe('mine');
  });

  test('fits a quota that requires requests and limits of CPU and memory', async () => {
    await using namespace = await at.world.kube.namespace('quota');
    await serviceAccount(namespace.name);
    const path = `/api/v1/namespaces/${namespace.name}/resourcequotas`;
    const hard = { 'requests.cpu': '1', 'requests.memory': '1Gi', 'limits.cpu': '2', 'limits.memory': '2Gi' };
    await at.world.kube.must('POST', path, { body: { metadata: { name: 'all' }, spec: { hard } } });
    await until(
      'the quota',
      async () =>
        (await at.world.kube.must('GET', `${path}/all`)).status !== undefined &&
        hasHard(await at.world.kube.must('GET', `${path}/all`)),
    );
    const resources = { requests: { cpu: '100m', memory: '64Mi' }, limits: { cpu: '200m', memory: '64Mi' } };
    expectGated(container(await inject(at.world, spec({ containers: [main({ resources })] }), namespace.name)));
    await expect(inject(at.world, aPod(), namespace.name)).rejects.toThrow(/must specify limits\.cpu for: main/);
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
    const pod = await inject(at.world, spec({ containers: [main({ resources })] }));
    expect(pod.status?.qosClass).toBe(is);
    const { requests, limits } = initContainer(pod, 'kilit').resources ?? {};
    expect(limits).toEqual({ cpu: '200m', memory: '128Mi' });
    expect(requests).toEqual(is === 'Guaranteed' ? limits : { cpu: '5m', memory: '32Mi' });
  });

  test('takes nothing for itself in a Pod that declares resources as a whole', async () => {
    const whole = { limits: { cpu: '1', memory: '1Gi' }, requests: { cpu: '1', memory: '1Gi' } };
    const pod = await inject(at.world, spec({ resources: whole, containers: [main({ resources: whole })] }));
    expect(pod.status?.qosClass).toBe('Guaranteed');
    expect(pod.spec.resources).toEqual(whole);
    expect(initContainer(pod, 'kilit').resources).toEqual({});
  });

  test('tells the scheduler of its port where the network is the node’s', async () => {
    const pod = await inject(at.world, annotated({ 'kilit.dev/port': '7000' }, { hostNetwork: true }));
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
    const pod = await inject(at.world, spec({ terminationGracePeriodSeconds: grace }));
    const api = pod.spec.volumes.find(({ name }) => name === 'kilit-api');
    expect(api?.projected?.sources[0]?.serviceAccountToken).toEqual({ path: 'token', expirationSeconds: lifetime });
  });
});

const hasHard = (quota: { readonly status?: unknown }): boolean =>
  (quota.status as { hard?: unknown }).hard !== undefined;

async function serviceAccount(namespace: string): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/serviceaccounts/default`;
  await until('ServiceAccount default', async () => (await at.world.kube.ask('GET', path)).status === 200);
}
