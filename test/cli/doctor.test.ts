import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { MUTATING_POLICIES as MUTATING, VALIDATING_POLICIES as VALIDATING } from '../../src/api/generated/policies.ts';
import { diagnose } from '../../src/cli/doctor/checks/index.ts';
import type { Facts } from '../../src/cli/doctor/facts.ts';
import { notChecked, worst } from '../../src/cli/doctor/finding.ts';
import { renderFindings } from '../../src/cli/doctor/render.ts';
import { troubleIn } from '../../src/cli/doctor/sidecars.ts';
import { repositoryRoot } from '../../tools/cluster/paths.ts';
import { aNode } from '../support/builders.ts';
import { aRawLease, aRawLock, aRawPod } from './support/objects.ts';

const yes = <Value>(value: Value) => ({ ok: true as const, value });
const no = { ok: false, kind: 'forbidden', why: "'eve' may not list it" } as const;

const rawNode = (over: Parameters<typeof aNode>[0] = {}) => {
  const { name, ready, kubeletVersion, declaredFeatures } = aNode(over);
  const conditions = [{ type: 'Ready', status: ready ? 'True' : 'False' }];
  return { metadata: { name }, status: { conditions, nodeInfo: { kubeletVersion }, declaredFeatures } };
};
const deployment = (over: { readonly ready?: number; readonly version?: string } = {}) => ({
  metadata: { name: 'kilit', namespace: 'ops', labels: { 'app.kubernetes.io/version': over.version ?? '0.1.0' } },
  spec: { replicas: 2 },
  status: { readyReplicas: over.ready ?? 2 },
});
const election = (before: string, after: string, holder = 'kilit-0_uid_7') => ({
  before: aRawLease({ holder, spec: { holderIdentity: holder, renewTime: before } }),
  after: aRawLease({ holder, spec: { holderIdentity: holder, renewTime: after } }),
  watchedSeconds: 1.5,
});
const bindings = [...MUTATING, ...Object.keys(VALIDATING)].map((name) => ({
  name,
  policy: name,
  actions: VALIDATING[name] === undefined ? [] : [VALIDATING[name]],
  parameter: undefined,
}));

/** A cluster that is well. */
const well = (over: Partial<Facts> = {}): Facts => ({
  cliVersion: '0.1.0',
  namespace: undefined,
  server: { major: '1', minor: '36', gitVersion: 'v1.36.3' },
  served: yes(['distributedlocks', 'distributedlocks/status']),
  policies: yes({ mutating: MUTATING, validating: Object.keys(VALIDATING), bindings }),
  canary: { kind: 'enforced' },
  injection: { kind: 'injected' },
  operator: {
    namespace: yes('ops'),
    deployments: yes([deployment()]),
    election: yes(election('t1', 't2')),
    base: yes(0n),
  },
  nodes: yes([rawNode()]),
  locks: yes([aRawLock()]),
  leases: yes([aRawLease()]),
  pods: yes([aRawPod('a')]),
  namespaces: yes([]),
  notConfirmed: yes([]),
  sidecars: yes([]),
  egressPolicies: yes([]),
  revision: yes(5000n),
  latenciesMs: [3, 5],
  marks: [],
  ...over,
});
const operator = (over: Partial<Facts['operator']>): Partial<Facts> => ({ operator: { ...well().operator, ...over } });
const mesh = [{ name: 'app' }, { name: 'istio-proxy' }];

const notOk = (facts: Facts) => diagnose(facts).filter(({ result }) => result !== 'ok');

test('finds nothing in a cluster that is well, and each check says what it saw', () => {
  const findings = diagnose(well());
  expect(notOk(well())).toEqual([]);
  expect(new Set(findings.map(({ check }) => check)).size).toBe(19);
  for (const { says } of findings) expect(says).toMatch(/\w/);
});

describe('finds', () => {
  const cases: readonly (readonly [string, Partial<Facts>, string, 'warn' | 'fail', RegExp])[] = [
    [
      'an old API server',
      { server: { major: '1', minor: '35+', gitVersion: 'v1.35.9' } },
      'api-server',
      'fail',
      /v1\.35\.9 is older than 1\.36/,
    ],
    ['no CRD', { served: { ok: false, kind: 'absent', why: '404' } }, 'crd', 'fail', /does not serve distributedlocks/],
    ['another CRD of the group', { served: yes(['other']) }, 'crd', 'fail', /does not serve/],
    [
      'a missing policy',
      { policies: yes({ mutating: [], validating: Object.keys(VALIDATING), bindings }) },
      'policies',
      'fail',
      /Missing: kilit-cronjob-label, kilit-inject, kilit-job-label\./,
    ],
    [
      'a binding that does not deny',
      {
        policies: yes({
          mutating: MUTATING,
          validating: Object.keys(VALIDATING),
          bindings: bindings.map((one) => (one.name === 'kilit-lease' ? { ...one, actions: ['Audit'] } : one)),
        }),
      },
      'policies',
      'fail',
      /Without a binding: kilit-lease \(Deny\)\./,
    ],
    [
      'a policy that is not enforced',
      { canary: { kind: 'notEnforced' } },
      'policy-enforced',
      'fail',
      /accepted a Lease/,
    ],
    [
      'a canary that may not be tried',
      { canary: { kind: 'unknown', why: "'eve' may not create leases" } },
      'policy-enforced',
      'warn',
      /Not checked: the dry run .*'eve' may not create leases/,
    ],
    [
      'a Pod that would not be injected',
      { injection: { kind: 'bare' } },
      'injection',
      'fail',
      /gets no sidecar, and is let in/,
    ],
    [
      'a sidecar that would not stop its Pod',
      { injection: { kind: 'dropped' } },
      'injection',
      'fail',
      /loses its restartPolicyRules/,
    ],
    [
      'Pods that are refused',
      { injection: { kind: 'refused', why: 'no sidecar' } },
      'injection',
      'fail',
      /is refused \(dry run\): no sidecar/,
    ],
    [
      'an injection that may not be tried',
      { injection: { kind: 'unknown', why: 'forbidden' } },
      'injection',
      'warn',
      /could not be tried .*forbidden/,
    ],
    ['no operator', operator({ deployments: yes([]) }), 'operator', 'fail', /no Deployment of the operator/],
    [
      'two operators',
      operator({ deployments: yes([deployment(), deployment()]) }),
      'operator',
      'fail',
      /There are 2 Deployments/,
    ],
    [
      'an operator that does not run',
      operator({ deployments: yes([deployment({ ready: 0 })]) }),
      'operator',
      'fail',
      /none of 2 replicas/,
    ],
    [
      'an operator without its stand-by',
      operator({ deployments: yes([deployment({ ready: 1 })]) }),
      'operator',
      'warn',
      /1 of 2 replicas are ready/,
    ],
    [
      'a chart of another version',
      operator({ deployments: yes([deployment({ version: '0.2.0' })]) }),
      'operator',
      'warn',
      /version 0\.2\.0, this command 0\.1\.0/,
    ],
    [
      'an election without a winner',
      operator({ election: yes(election('t1', 't1', '')) }),
      'operator-leader',
      'fail',
      /No operator is elected/,
    ],
    [
      'a leader that does not renew',
      operator({ election: yes(election('t1', 't1')) }),
      'operator-leader',
      'fail',
      /Operator kilit-0 did not renew/,
    ],
    [
      'an old kubelet',
      { nodes: yes([rawNode(), rawNode({ name: 'n2', kubeletVersion: 'v1.35.0' })]) },
      'nodes',
      'fail',
      /kubelet v1\.35\.0 of node n2 is older/,
    ],
    [
      'a kubelet without the feature',
      { nodes: yes([rawNode({ declaredFeatures: [] })]) },
      'nodes',
      'fail',
      /does not declare the feature/,
    ],
    ['a node that is not Ready', { nodes: yes([rawNode({ ready: false })]) }, 'nodes', 'warn', /Not Ready: n1/],
    [
      'a token above the revision',
      { leases: yes([aRawLease({ token: '9000' })]) },
      'revision',
      'fail',
      /next token would be 5000 \(revision 5000, base 0\), not above 9000 of Lease shop\/kilit\.billing/,
    ],
    [
      'a Lease whose token is above its own revision',
      { leases: yes([aRawLease({ token: '2000', resourceVersion: '1000' })]) },
      'revision',
      'fail',
      /Leases whose token is above their revision and the base 0: shop\/kilit\.billing/,
    ],
    [
      'a mark that the cluster has not come to',
      { marks: [{ resource: 'x', token: 5000n }] },
      'marks',
      'fail',
      /next is 5000\): x at 5000/,
    ],
    [
      'a mark above the token of the holder',
      { marks: [{ resource: 'shop/billing', token: 901n }] },
      'marks',
      'fail',
      /token is behind the mark: shop\/billing at 901/,
    ],
    [
      'a Pod without a sidecar',
      { pods: yes([aRawPod('a', { spec: { initContainers: [] } })]) },
      'pods-injected',
      'fail',
      /shop\/a/,
    ],
    ['a Pod that names no lock', { locks: yes([]), leases: yes([]) }, 'lock-exists', 'warn', /shop\/a \(billing\)/],
    [
      'a Pod that cannot reach the API server, and who may be in its way',
      {
        sidecars: yes([{ namespace: 'shop', pod: 'a', says: 'timed out' }]),
        egressPolicies: yes([
          { namespace: 'shop', name: 'default-deny' },
          { namespace: 'bank', name: 'other' },
        ]),
      },
      'pods-reach-api',
      'fail',
      /shop\/a\. The first says: timed out/,
    ],
    [
      'grants that were not confirmed',
      { notConfirmed: yes([{ metadata: {}, note: 'Pod a did not.', regarding: { name: 'billing' } }]) },
      'pods-reach-api',
      'warn',
      /of locks billing\. The last: Pod a did not\./,
    ],
    [
      'two sidecars on one port of a node',
      {
        pods: yes([
          aRawPod('a', { spec: { hostNetwork: true, nodeName: 'n1' } }),
          aRawPod('b', { spec: { hostNetwork: true, nodeName: 'n1' } }),
        ]),
      },
      'host-ports',
      'fail',
      /Two sidecars on port 9911 of node n1: shop\/a, shop\/b\./,
    ],
    [
      'a Pod that the kubelet refused for its port',
      { pods: yes([aRawPod('b', { spec: { hostNetwork: true }, status: { phase: 'Failed', reason: 'NodePorts' } })]) },
      'host-ports',
      'fail',
      /No node has the port free for shop\/b \(port 9911\)/,
    ],
    [
      'a port that is not excluded from the mesh',
      {
        pods: yes([
          aRawPod('a', {
            spec: { containers: mesh },
            metadata: { annotations: { 'traffic.sidecar.istio.io/excludeOutboundPorts': '443' } },
          }),
        ]),
      },
      'mesh',
      'fail',
      /not excluded from the mesh: shop\/a/,
    ],
    [
      'a proxy that starts too late',
      {
        pods: yes([
          aRawPod('a', {
            spec: { containers: mesh },
            metadata: { annotations: { 'traffic.sidecar.istio.io/excludeInboundPorts': '80, 9911' } },
          }),
        ]),
      },
      'mesh',
      'warn',
      /starts after the sidecar .*shop\/a/,
    ],
    [
      'a namespace whose mesh will inject a proxy',
      {
        namespaces: yes([
          {
            metadata: { name: 'shop', uid: 'u', resourceVersion: '1', annotations: { 'linkerd.io/inject': 'enabled' } },
          },
        ]),
      },
      'mesh',
      'fail',
      /shop\/a/,
    ],
    [
      'a lease shorter than the stopping',
      {
        locks: yes([aRawLock({ leaseDurationSeconds: 5 })]),
        pods: yes([aRawPod('a', { spec: { containers: [{ name: 'a' }, { name: 'b' }] } })]),
      },
      'lease-for-containers',
      'warn',
      /lease 5 s, 3 containers need 7 s/,
    ],
    [
      'a lease that is tight for the latency',
      { latenciesMs: [5, 1700] },
      'lease-for-latency',
      'warn',
      /shop\/billing .*1700 ms/,
    ],
    ['a lease that is too short for the latency', { latenciesMs: [5, 5000] }, 'lease-for-latency', 'fail', /5000 ms/],
    [
      'a Lease without a lock',
      { leases: yes([aRawLease(), aRawLease({ name: 'kilit.gone', holder: '' })]) },
      'stray-leases',
      'warn',
      /shop\/kilit\.gone/,
    ],
    [
      'a finalizer on a Pod that holds nothing',
      { pods: yes([aRawPod('b', { metadata: { finalizers: ['kilit.dev/holder'] } })]) },
      'finalizers',
      'warn',
      /shop\/b/,
    ],
  ];
  test.each(cases)('%s', (_, facts, check, result, says) => {
    const findings = notOk(well(facts));
    expect(findings).toContainEqual(expect.objectContaining({ check, result, says: expect.stringMatching(says) }));
    for (const { means, todo } of findings)
      expect([means, todo]).toEqual([expect.stringMatching(/\w/), expect.stringMatching(/\w/)]);
  });
});

describe('does not find', () => {
  const fine: readonly (readonly [string, Partial<Facts>])[] = [
    ['a newer Kubernetes', { server: { major: '1', minor: '37', gitVersion: 'v1.37.0' } }],
    ['a token just below the next', { leases: yes([aRawLease({ token: '4999', resourceVersion: '5000' })]) }],
    [
      'a great token when the base is greater',
      { leases: yes([aRawLease({ token: '9000' })]), ...operator({ base: yes(9000n) }) },
    ],
    ['a mark that is the token of the holder', { marks: [{ resource: 'shop/billing', token: 900n }] }],
    [
      'a mark above the token of a free lock, whose next is above it',
      { marks: [{ resource: 'shop/billing', token: 901n }], leases: yes([aRawLease({ holder: '' })]) },
    ],
    [
      'an ended Pod without a sidecar',
      { pods: yes([aRawPod('a', { spec: { initContainers: [] }, status: { phase: 'Succeeded' } })]) },
    ],
    [
      'two Pods with hostNetwork on two nodes, or with two ports',
      {
        pods: yes([
          aRawPod('a', { spec: { hostNetwork: true, nodeName: 'n1' } }),
          aRawPod('b', { spec: { hostNetwork: true, nodeName: 'n2' } }),
          aRawPod('c', {
            spec: {
              hostNetwork: true,
              nodeName: 'n1',
              initContainers: [
                { name: 'kilit-reset' },
                { name: 'kilit', restartPolicy: 'Always', ports: [{ containerPort: 9912 }] },
              ],
            },
          }),
        ]),
      },
    ],
    [
      'a native proxy that stands before the sidecar, with the port excluded',
      {
        pods: yes([
          aRawPod('a', {
            metadata: { annotations: { 'traffic.sidecar.istio.io/excludeInboundPorts': '9911' } },
            spec: {
              initContainers: [
                { name: 'istio-proxy', restartPolicy: 'Always' },
                { name: 'kilit-reset' },
                { name: 'kilit', restartPolicy: 'Always', ports: [{ containerPort: 9911 }] },
              ],
            },
          }),
        ]),
      },
    ],
    ['the finalizer of the holder', { pods: yes([aRawPod('a', { metadata: { finalizers: ['kilit.dev/holder'] } })]) }],
  ];
  test.each(fine)('%s', (_, facts) => {
    expect(notOk(well(facts))).toEqual([]);
  });
});

test('names what may not be read, and goes on with the rest', () => {
  const blind = well({
    policies: no,
    nodes: no,
    locks: no,
    leases: no,
    pods: no,
    namespaces: no,
    notConfirmed: no,
    sidecars: no,
    egressPolicies: no,
    revision: no,
    operator: { namespace: no, deployments: no, election: no, base: no },
    marks: [{ resource: 'shop/billing', token: 1n }],
  });
  const findings = diagnose(blind);
  expect(findings).toHaveLength(19);
  expect(worst(findings)).toBe('warn');
  const unread = findings.filter(({ says }) => says === "Not checked: 'eve' may not list it.");
  expect(unread.map(({ result }) => result)).toEqual(Array(15).fill('warn'));
});

test('shows one line when all is well, else what it means and what to do', () => {
  const findings = [...diagnose(well()).slice(0, 1), notChecked('nodes', no)];
  expect(renderFindings(findings)).toBe(`ok    api-server  Kubernetes v1.36.3
WARN  nodes       Not checked: 'eve' may not list it.
                  Whether this is well is not known.
                  → Let somebody with more rights run doctor.

0 failures, 1 warning, 1 ok
`);
});

describe("a sidecar's log", () => {
  const line = (msg: string, reason?: string) => JSON.stringify({ level: 40, reason, msg });
  test.each([
    ['trouble that lasts', [line('Began to wait'), line('Lease could not be followed', 'timed out')], 'timed out'],
    [
      'trouble that has passed',
      [line('Lease could not be followed', 'x'), line('Could follow the Lease again')],
      undefined,
    ],
    ['a lock that does not exist yet', [line('lock a does not exist in namespace b, or …')], undefined],
    ['no log, and lines that are none', ['', 'Killed'], undefined],
  ])('tells %s', (_, lines, says) => {
    expect(troubleIn(lines.join('\n'))).toBe(says);
  });
});

test('the docs name every check', () => {
  const docs = readFileSync(join(repositoryRoot, 'docs/cli.md'), 'utf8');
  for (const { check } of diagnose(well())) expect(docs).toContain(`| \`${check}\` |`);
});
