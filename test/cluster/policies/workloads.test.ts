/** Labels on what makes Pods: copied where that is what was meant, warned about where they do nothing. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Answer, KubeObject } from '../../support/kube.ts';
import { openWorld, type World } from './world.ts';

let world: World;
beforeAll(async () => {
  world = await openWorld('workload');
});
afterAll(() => world?.[Symbol.asyncDispose]());

const LABEL = 'kilit.dev/lock';
type Labels = Readonly<Record<string, string>> | undefined;

const template = (labels?: Labels) => ({
  ...(labels !== undefined && { metadata: { labels } }),
  spec: { restartPolicy: 'Never', schedulerName: 'nobody', containers: [{ name: 'main', image: 'example/main:1' }] },
});
const aJob = (own: Labels, pod?: Labels) => ({
  metadata: { name: 'job', labels: own },
  spec: { template: template(pod) },
});
const aCronJob = (own: Labels, job?: Labels, pod?: Labels) => ({
  metadata: { name: 'cron', labels: own },
  spec: {
    schedule: '0 0 1 1 *',
    jobTemplate: { ...(job !== undefined && { metadata: { labels: job } }), spec: { template: template(pod) } },
  },
});

const path = (group: string, plural: string) => `/apis/${group}/namespaces/${world.namespace}/${plural}`;
const create = (group: string, plural: string, body: unknown): Promise<Answer> =>
  world.kube.ask('POST', `${path(group, plural)}?dryRun=All`, { body });

interface Labelled {
  readonly metadata?: { readonly labels?: Labels };
}
const labelsOf = (object: KubeObject, template: 'template' | 'jobTemplate') =>
  (object.spec?.[template] as Labelled | undefined)?.metadata?.labels;
const podLabel = (job: KubeObject) => labelsOf(job, 'template')?.[LABEL];
const jobLabel = (cron: KubeObject) => labelsOf(cron, 'jobTemplate')?.[LABEL];

describe('a label on a Job', () => {
  test.each([
    { what: 'without metadata', pod: undefined },
    { what: 'with other labels', pod: { app: 'x' } },
    { what: 'that has it already', pod: { [LABEL]: 'billing' } },
  ])('is copied to a Pod template $what', async ({ pod }) => {
    const answer = await create('batch/v1', 'jobs', aJob({ [LABEL]: 'billing' }, pod));
    expect(answer.body.message).toBeUndefined();
    expect(podLabel(answer.body)).toBe('billing');
    if (pod !== undefined) expect(labelsOf(answer.body, 'template')).toMatchObject(pod);
  });

  test('is refused where the Pod template names another lock', async () => {
    const answer = await create('batch/v1', 'jobs', aJob({ [LABEL]: 'billing' }, { [LABEL]: 'other' }));
    expect(answer.body.message).toMatch(
      /labels kilit\.dev\/lock of the Job and of its templates name different locks: billing, other; a Job takes exactly one/,
    );
  });

  test('is not put on a Job that has none', async () => {
    const answer = await create('batch/v1', 'jobs', aJob({ app: 'x' }));
    expect(answer.status).toBe(201);
    expect(podLabel(answer.body)).toBeUndefined();
  });
});

describe('a label on a CronJob', () => {
  test.each([
    { what: 'without metadata', job: undefined },
    { what: 'with other labels', job: { app: 'x' } },
  ])('is copied to a Job template $what', async ({ job }) => {
    const answer = await create('batch/v1', 'cronjobs', aCronJob({ [LABEL]: 'billing' }, job));
    expect(answer.body.message).toBeUndefined();
    expect(jobLabel(answer.body)).toBe('billing');
  });

  test('follows a change, and stays when it is removed', async () => {
    const cron = `${path('batch/v1', 'cronjobs')}/cron`;
    await world.kube.must('POST', path('batch/v1', 'cronjobs'), { body: aCronJob({ app: 'x' }) });
    const label = async (value: string | null) =>
      jobLabel(await world.kube.must('PATCH', cron, { body: { metadata: { labels: { [LABEL]: value } } } }));
    expect(await label('billing')).toBe('billing');
    expect(await label('other')).toBe('other');
    expect(await label(null)).toBe('other');
  });

  test('is refused where a template names another lock', async () => {
    for (const cron of [
      aCronJob({ [LABEL]: 'billing' }, { [LABEL]: 'other' }),
      aCronJob({ [LABEL]: 'billing' }, undefined, { [LABEL]: 'other' }),
    ]) {
      const answer = await create('batch/v1', 'cronjobs', cron);
      expect(answer.body.message).toMatch(/labels kilit\.dev\/lock of the CronJob .* name different locks: billing/);
    }
  });

  test('reaches the Pods of its Jobs', async () => {
    await world.kube.must('POST', path('batch/v1', 'cronjobs'), {
      body: { ...aCronJob({ [LABEL]: 'billing' }), metadata: { name: 'whole', labels: { [LABEL]: 'billing' } } },
    });
    world.kube.kubectl(['create', 'job', 'by-hand', '--from=cronjob/whole', '-n', world.namespace]);
    const pods = `/api/v1/namespaces/${world.namespace}/pods?labelSelector=job-name%3Dby-hand`;
    const items = async () => (await world.kube.must('GET', pods)).items as KubeObject[];
    await expect.poll(async () => (await items()).length, { timeout: 30_000 }).toBe(1);
    const [pod] = await items();
    expect(pod?.spec?.initContainers).toMatchObject([{ name: 'kilit-reset' }, { name: 'kilit' }]);
  });
});

describe('a label on something that makes Pods for ever', () => {
  const selector = { matchLabels: { app: 'x' } };
  const body = (pod: Labels) => ({
    metadata: { name: 'made', labels: { [LABEL]: 'billing' } },
    spec: {
      selector,
      serviceName: 'x',
      template: {
        metadata: { labels: { app: 'x', ...pod } },
        spec: { containers: [{ name: 'main', image: 'example/main:1' }] },
      },
    },
  });
  const without = (made: ReturnType<typeof body>) => ({ ...made, spec: { ...made.spec, serviceName: undefined } });
  const recreated = (made: { spec: object }) => ({ ...made, spec: { ...made.spec, strategy: { type: 'Recreate' } } });

  test.each([
    { plural: 'deployments', kind: 'Deployment', make: (pod: Labels) => recreated(without(body(pod))) },
    { plural: 'replicasets', kind: 'ReplicaSet', make: (pod: Labels) => without(body(pod)) },
    { plural: 'daemonsets', kind: 'DaemonSet', make: (pod: Labels) => without(body(pod)) },
    { plural: 'statefulsets', kind: 'StatefulSet', make: body },
  ])('earns a warning on a $kind, and none if its template has it too', async ({ plural, kind, make }) => {
    const misplaced = await create('apps/v1', plural, make({}));
    expect(misplaced.status).toBe(201);
    expect(misplaced.warnings.join()).toContain(
      `label kilit.dev/lock=billing on the ${kind} itself has no effect; put it on spec.template.metadata.labels`,
    );
    const both = await create('apps/v1', plural, make({ [LABEL]: 'billing' }));
    expect(both.status).toBe(201);
    expect(both.warnings).toEqual([]);
  });
});

describe('a rolling update of a Deployment', () => {
  interface Change {
    readonly lock?: string;
    readonly mode?: string;
    readonly type?: string;
    readonly replicas?: number;
  }
  const aDeployment = ({ lock, mode, type, replicas }: Change) => ({
    metadata: { name: 'made' },
    spec: {
      ...(replicas !== undefined && { replicas }),
      selector: { matchLabels: { app: 'x' } },
      ...(type !== undefined && { strategy: { type } }),
      template: {
        metadata: {
          labels: { app: 'x', ...(lock !== undefined && { [LABEL]: lock }) },
          ...(mode !== undefined && { annotations: { 'kilit.dev/mode': mode } }),
        },
        spec: { containers: [{ name: 'main', image: 'example/main:1' }] },
      },
    },
  });

  test.each([
    { what: 'no strategy', change: { replicas: 3 } },
    { what: 'strategy RollingUpdate', change: { replicas: 3, type: 'RollingUpdate' } },
    { what: 'mode gate', change: { replicas: 3, mode: 'gate' } },
  ])('of several gated Pods earns a warning, with $what', async ({ change }) => {
    const answer = await create('apps/v1', 'deployments', aDeployment({ lock: 'billing', ...change }));
    expect(answer.status).toBe(201);
    expect(answer.warnings.join()).toContain(
      "kilit: Deployment 'made' is gated by lock 'billing' and has 3 replicas with strategy RollingUpdate: " +
        'only one of them is ever Ready, so a rollout does not complete; set replicas 1, strategy Recreate or mode standby',
    );
  });

  test.each([
    { what: 'of one replica, which completes by itself', change: { lock: 'billing' } },
    { what: 'with strategy Recreate', change: { lock: 'billing', type: 'Recreate', replicas: 3 } },
    { what: 'of standbys', change: { lock: 'billing', mode: 'standby', replicas: 3 } },
    { what: 'without a lock', change: { replicas: 3 } },
  ])('earns none $what', async ({ change }) => {
    const answer = await create('apps/v1', 'deployments', aDeployment(change));
    expect(answer.status).toBe(201);
    expect(answer.warnings).toEqual([]);
  });
});
