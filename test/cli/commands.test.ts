/** The commands against an API server of plain objects. */
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { writeKubeconfig } from '../support/kilit.ts';
import { type FakeCluster, startFakeCluster } from './support/fake-cluster.ts';
import { inProcess } from './support/in-process.ts';
import { aRawLease, aRawLock, LEASES, LOCKS } from './support/objects.ts';

let cluster: FakeCluster;
// Its many files take seconds on a busy machine.
beforeAll(() => import('../../src/kube/user-config.ts'), 60_000);
beforeEach(async () => {
  cluster = await startFakeCluster({ namespace: 'shop' });
  cluster.put(LOCKS, { ...aRawLock() });
  cluster.put(LOCKS, { ...aRawLock({ name: 'ledger', namespace: 'bank' }) });
  cluster.put(LEASES, { ...aRawLease() });
});
afterEach(() => cluster[Symbol.asyncDispose]());

const run = (...words: string[]) => inProcess(words, { env: cluster.env });
const revise = (lease: Parameters<typeof aRawLease>[0]) => cluster.put(LEASES, { ...aRawLease(lease) });
const onLock = (annotation: string): string | undefined =>
  cluster.get(LOCKS, 'billing', 'shop')?.metadata.annotations?.[annotation];

describe('kilit list', () => {
  test("lists the context's namespace, or that of -n, or all", async () => {
    const first = async (...words: string[]) =>
      (await run('list', ...words)).stdout
        .split('\n')
        .slice(1, -1)
        .map((line) => line.split(' ')[0]);
    expect(await first()).toEqual(['billing']);
    expect(await first('-n', 'bank')).toEqual(['ledger']);
    expect(await first('-A')).toEqual(['shop', 'bank']);
  });

  test('prints data as JSON and YAML, with tokens as strings', async () => {
    const [row] = JSON.parse((await run('list', '-o', 'json')).stdout) as Record<string, unknown>[];
    expect(row).toMatchObject({ name: 'billing', holder: 'a', token: '900', next: 'b' });
    expect((await run('list', '-o', 'yaml')).stdout).toContain(
      '  name: billing\n  holder: a\n  node: n1\n  token: "900"\n',
    );
  });

  test('says on standard error that there are none', async () => {
    expect(await run('list', '-n', 'empty')).toEqual({
      code: 0,
      stdout: '',
      stderr: "There are no locks in namespace 'empty'.\n",
    });
  });
});

describe('what goes wrong is told', () => {
  test('a lock that is not there: where one of that name is', async () => {
    expect(await run('describe', 'ledger')).toEqual({
      code: 1,
      stdout: '',
      stderr:
        "[NotFound] There is no lock 'ledger' in namespace 'shop'. One of that name is in: bank. Choose it: -n bank\n",
    });
    expect((await run('describe', 'payments')).stderr).toContain(
      'No other namespace has one of that name. Locks here: billing.',
    );
    cluster.forbid(/^GET \/apis\/kilit.dev\/v1alpha1\/distributedlocks/);
    expect((await run('describe', 'ledger')).stderr).toContain(
      'Other namespaces cannot be read with these rights; choose one: -n NS.',
    );
  });

  test('a missing right: which one, of whom, where', async () => {
    cluster.forbid(/distributedlocks/);
    expect(await run('list', '-A')).toEqual({
      code: 1,
      stdout: '',
      stderr:
        "[Forbidden] 'alice' may not list distributedlocks.kilit.dev in the whole cluster. Ask for this right. The built-in role 'view' of a namespace lets read its locks, 'edit' lets declare them.\n",
    });
    expect((await run('list')).stderr).toContain("'alice' may not list distributedlocks.kilit.dev in namespace shop.");
  });

  test('kilit that is not installed', async () => {
    await using bare = await startFakeCluster();
    const { code, stderr } = await inProcess(['list'], { env: bare.env });
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('[NotInstalled] This cluster knows no distributedlocks.kilit.dev'),
    ]);
    expect((await inProcess(['describe', 'x'], { env: bare.env })).stderr).toContain('[NotInstalled]');
  });

  test('a cluster that does not answer', async () => {
    const gone = await startFakeCluster();
    using kubeconfig = writeKubeconfig({ server: gone.server, ca: gone.ca, token: 'secret' });
    await gone[Symbol.asyncDispose]();
    const { code, stderr } = await inProcess(['list'], { env: { KUBECONFIG: kubeconfig.path } });
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^\[Unreachable\] No answer from the API server https:\/\/127\.0\.0\.1:\d+ \(context 'fake'\): connect ECONNREFUSED .*Is the cluster up, and is this the right context\?\n$/,
    );
  });

  test('a kubeconfig or context that is not there, and no cluster at all', async () => {
    expect(await inProcess(['list', '--kubeconfig', '/nowhere'], {})).toEqual({
      code: 2,
      stdout: '',
      stderr: 'There is no kubeconfig /nowhere\n',
    });
    expect(await run('list', '--context', 'prod')).toEqual({
      code: 2,
      stdout: '',
      stderr: "The kubeconfig has no context 'prod'. It has: fake\n",
    });
    expect(await inProcess(['list'], {})).toEqual({
      code: 2,
      stdout: '',
      stderr: 'No cluster is chosen: there is no --kubeconfig, no $KUBECONFIG and no ~/.kube/config\n',
    });
    expect((await inProcess(['list'], { env: { KUBECONFIG: '/a:/b' } })).stderr).toBe(
      'There is no file /a nor /b, which $KUBECONFIG names\n',
    );
  });

  test('a wrong option', async () => {
    expect(await run('list', '--all')).toMatchObject({
      code: 2,
      stderr: "'kilit list' has no option '--all'. See: kilit list --help\n",
    });
    expect(await run('break', 'billing')).toMatchObject({
      code: 2,
      stderr: "'kilit break' needs --reason TEXT. See: kilit break --help\n",
    });
    expect(await run('break', '--reason', 'x')).toMatchObject({
      code: 2,
      stderr: "'kilit break' needs LOCK. See: kilit break --help\n",
    });
    expect(await run('base', 'raise')).toMatchObject({
      code: 2,
      stderr: 'Give either TO or --above-all. See: kilit base raise --help\n',
    });
    expect(await run('doctor', '--mark', 'shop/billing=x')).toMatchObject({ code: 2 });
    expect(cluster.requests).toEqual([]);
  });
});

describe.each(['break', 'handover'] as const)('kilit %s', (kind) => {
  const annotation = `kilit.dev/${kind}`;
  const ask = (...words: string[]) => run(kind, 'billing', '--reason', 'node n7 is frozen', ...words);

  test('writes token, name and reason as the annotation', async () => {
    expect(await ask('--yes')).toMatchObject({
      code: 0,
      stdout: `Asked for the ${kind} of lock billing, token 900, as alice.\n`,
    });
    expect(JSON.parse(onLock(annotation) ?? '')).toEqual({ token: '900', by: 'alice', reason: 'node n7 is frozen' });
  });

  test('writes nothing without a yes, without the right, or with a reason that is too long', async () => {
    expect(await ask()).toMatchObject({ code: 2, stdout: '' });
    expect(await run(kind, 'billing', '--yes', '--reason', 'x'.repeat(257))).toMatchObject({ code: 2 });
    expect(await run(kind, 'billing', '--yes', '--reason', '  ')).toMatchObject({ code: 2 });
    cluster.allowed = false;
    expect(await ask('--yes')).toMatchObject({
      code: 1,
      stdout: '',
      stderr:
        "[Forbidden] 'alice' may not break distributedlocks.kilit.dev 'billing' in namespace shop. The role 'admin' of the namespace has that verb.\n",
    });
    expect(cluster.requests.filter((line) => line.startsWith('PATCH'))).toEqual([]);
  });

  test('writes on though the status of the lock changes in the same moment', async () => {
    let changes = 2;
    cluster.before(/^PATCH/, () => {
      changes -= 1;
      if (changes >= 0) cluster.put(LOCKS, { ...aRawLock({ status: { waiters: changes } }) });
    });
    expect(await ask('--yes')).toMatchObject({ code: 0 });
    expect(cluster.requests.filter((line) => line.startsWith('PATCH'))).toHaveLength(3);
    expect(onLock(annotation)).toContain('"token":"900"');
  });

  test('writes nothing when the lock passes on between question and answer', async () => {
    cluster.before(/selfsubjectaccessreviews/, () => revise({ holder: 'b_uid-b', token: '950' }));
    const { code, stderr } = await ask('--yes');
    expect([code, stderr]).toEqual([1, expect.stringContaining('its token is 950 now, not 900. Nothing was written.')]);
    expect(onLock(annotation)).toBeUndefined();
  });

  test('puts no second request over one that stands, but over one of an earlier grant', async () => {
    const standing = (token: string) =>
      cluster.put(LOCKS, {
        ...aRawLock({ annotations: { [annotation]: JSON.stringify({ token, by: 'bob', reason: 'r' }) } }),
      });
    standing('900');
    expect(await ask('--yes')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`A ${kind} of token 900 is asked for already, by bob: r.`),
    });
    standing('800');
    expect(await ask('--yes')).toMatchObject({ code: 0 });
  });

  test('with --wait tells each step of an operator until the lock has passed on', async () => {
    playOperator(kind, [
      () =>
        kind === 'break'
          ? revise({ holder: 'break-uid-lock_x', token: '950' })
          : revise({ annotations: { 'kilit.dev/yield': 'Requested' } }),
      () => {
        cluster.put(LOCKS, {
          ...aRawLock({
            status: {
              [kind === 'break' ? 'lastBreak' : 'lastHandover']: { token: '900', by: 'alice', reason: 'r', time: 't' },
            },
          }),
        });
      },
      () => revise({ holder: '', token: kind === 'break' ? '950' : '900' }),
      () => revise({ holder: 'b_uid-b', token: '960' }),
    ]);
    const { code, stderr } = await ask('--yes', '--wait');
    const told = stderr
      .split('\n')
      .filter((line) => /^ +\d+s {2}/.test(line))
      .map((line) => line.trim().replace(/^\d+s {2}/, ''));
    expect(code).toBe(0);
    expect(told).toEqual(
      kind === 'break'
        ? [
            'asked; the operator has not acted yet',
            'the token is 950 now: guards refuse the former holder; waiting until its programs are stopped',
            'done: the lock is free, and its token is 950',
          ]
        : [
            'asked; the operator has not acted yet',
            'the operator has asked Pod a to give the lock up',
            'the grant has ended; nobody holds the lock, the next grant moves the token',
            'done: Pod b holds the lock with token 960',
          ],
    );
  });

  test('with --wait fails when the operator drops the request', async () => {
    playOperator(kind, [() => cluster.put(LOCKS, { ...aRawLock() })]);
    const { code, stderr } = await ask('--yes', '--wait');
    expect([code, stderr]).toEqual([1, expect.stringContaining(`The operator has dropped the ${kind} of token 900`)]);
  });
});

/** The operator's writes, one after every second look of the command from the moment that the request stands. */
function playOperator(kind: string, steps: readonly (() => void)[]): void {
  const rest = [...steps];
  let looks = 0;
  cluster.before(/^GET .*\/leases\/kilit\.billing$/, () => {
    const begun = rest.length < steps.length || onLock(`kilit.dev/${kind}`) !== undefined;
    if (!begun) return;
    looks += 1;
    if (looks % 2 === 0) rest.shift()?.();
  });
}

describe('kilit base', () => {
  const NAMESPACES = '/api/v1/namespaces';
  const base = () => cluster.get(NAMESPACES, 'ops')?.metadata.annotations?.['kilit.dev/token-base'];
  beforeEach(() => {
    cluster.put(NAMESPACES, { metadata: { name: 'ops', uid: 'uid-ops' } });
    cluster.put('/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings', {
      metadata: { name: 'kilit-lease' },
      spec: { paramRef: { name: 'ops' } },
    });
  });

  test('show finds the namespace by the policy, and tells when the revision fell behind', async () => {
    const { code, stdout } = await run('base', 'show');
    expect([code, stdout]).toEqual([
      0,
      expect.stringMatching(/^base {13}0 .*Namespace ops\)\nrevision {9}\d+\n.*\ngreatest token {3}900/),
    ]);
    revise({ token: '5000000' });
    const behind = await run('base', 'show');
    expect([behind.code, behind.stdout]).toEqual([
      1,
      expect.stringContaining('Raise the base: kilit base raise 2000000000\n'),
    ]);
  });

  test('does not take a token that is granted while it reads for one above the revision', async () => {
    for (let i = 0; i < 100; i += 1) revise({ token: '900' });
    // Each read of Leases is late: meanwhile other writes go on, and a grant carries their revision.
    let writes = 0;
    cluster.before(/^GET \/apis\/coordination\.k8s\.io\/v1\/leases$/, () => {
      for (; writes < 50; writes += 1) revise({});
      revise({ token: String(1000 + 2 + 100 + 50) });
    });
    const shown = await run('base', 'show', '-o', 'json');
    expect(JSON.parse(shown.stdout)).toMatchObject({ behind: false });
    const order = cluster.requests.filter((line) => line.includes('leases')).map((line) => line.includes('limit=1'));
    expect(order).toEqual([false, true]);
  });

  test('raise refuses to fall, to come too low and to ask nobody, and raises', async () => {
    revise({ token: '5000000' });
    expect(await run('base', 'raise', '100', '--yes')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('not above 5000000 (Lease shop/kilit.billing)'),
    });
    expect(await run('base', 'raise', '--above-all')).toMatchObject({ code: 2 });
    expect(base()).toBeUndefined();
    expect(await run('base', 'raise', '--above-all', '--yes')).toMatchObject({
      code: 0,
      stdout: 'The token base is 2000000000.\n',
    });
    expect(base()).toBe('2000000000');
    expect(await run('base', 'raise', '1999999999', '--yes')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('the token base only grows'),
    });
  });

  test('raise does not write over somebody else who raises it meanwhile', async () => {
    cluster.before(/^PATCH/, () =>
      cluster.put(NAMESPACES, {
        metadata: { name: 'ops', uid: 'uid-ops', annotations: { 'kilit.dev/token-base': '9000000000' } },
      }),
    );
    expect(await run('base', 'raise', '--above-all', '--yes')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('[Conflict]'),
    });
    expect(base()).toBe('9000000000');
  });
});

describe('a question', () => {
  const asked = (answer: string) => inProcess(['break', 'billing', '--reason', 'r'], { env: cluster.env, answer });

  test('is put after what will happen was told, and is answered by yes alone', async () => {
    for (const answer of ['', 'y', 'no']) {
      expect(await asked(answer)).toMatchObject({
        code: 1,
        stdout: '',
        stderr: expect.stringMatching(/Nothing was done\.\n$/),
      });
    }
    expect(onLock('kilit.dev/break')).toBeUndefined();
    const done = await asked(' yes\n');
    expect(done).toMatchObject({ code: 0, stdout: 'Asked for the break of lock billing, token 900, as alice.\n' });
    expect(done.stderr).toMatch(
      /is held by Pod a with token 900, for .*\nThe token moves at once.*at the latest after 20 s\.\nBreak the grant of token 900\? Type yes to go on: /,
    );
  });
});

describe('kilit doctor', () => {
  test('looks at one namespace when others may not be listed, says so, and names the rights that are missing', async () => {
    cluster.forbid(
      /^GET \/apis\/kilit\.dev\/v1alpha1\/distributedlocks|deployments|nodes|admissionregistration|\/api\/v1\/namespaces$/,
    );
    cluster.forbid(/^POST .*(leases|pods)/);
    cluster.put('/api/v1/pods', { metadata: { name: 'x', namespace: 'elsewhere' } });
    for (const collection of ['/apis/events.k8s.io/v1/events', '/apis/networking.k8s.io/v1/networkpolicies']) {
      cluster.put(collection, { metadata: { name: 'x', namespace: 'elsewhere' } });
    }
    const { code, stdout, stderr } = await run('doctor');
    expect(stderr).toContain("Only namespace 'shop' is looked at");
    expect(stdout).toMatch(/WARN {2}nodes +Not checked: 'alice' may not list nodes in the whole cluster\.\n/);
    expect(stdout).toMatch(
      /WARN {2}policy-enforced +Not checked: .*'alice' may not create leases\.coordination\.k8s\.io in namespace shop/,
    );
    expect(stdout).toMatch(/WARN {2}operator +Not checked: 'alice' may not list deployments\.apps/);
    expect(stdout).toMatch(/ok {4}stray-leases +Each of 1 Leases kilit\.\* has its lock\n/);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/\n\n0 failures, \d warnings, \d+ ok\n$/)]);
  });

  test('prints its findings as data, with the worst result', async () => {
    const { code, stdout, stderr } = await run('doctor', '-n', 'shop', '-o', 'json');
    const report = JSON.parse(stdout) as { readonly result: string; readonly findings: readonly object[] };
    expect([code, stderr, report.result]).toEqual([1, '', 'fail']);
    expect(report.findings).toContainEqual(
      expect.objectContaining({
        check: 'policies',
        result: 'warn',
        says: 'Not checked: the API server does not serve it.',
      }),
    );
  });
});
