/**
 * The real API server as tests see it: plain HTTPS, so that who asks and what is asked stand in the test itself.
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { parse } from 'yaml';

/** Who asks. The default is the kubeconfig's own user, a member of `system:masters`. */
export type Identity =
  | { readonly kind: 'admin' }
  | { readonly kind: 'token'; readonly token: string }
  /** By impersonation: the API server takes these for the user's name, groups and extra. */
  | {
      readonly kind: 'user';
      readonly name: string;
      readonly groups?: readonly string[];
      readonly extra?: Readonly<Record<string, string>>;
    };

export interface Ask {
  readonly as?: Identity;
  readonly body?: unknown;
  /** Of a PATCH: merge (default), strategic, json or apply. */
  readonly patch?: keyof typeof PATCH_TYPES;
}

export interface Answer {
  readonly status: number;
  readonly body: KubeObject;
  /** Texts of the Warning headers. */
  readonly warnings: readonly string[];
}

/** An object of the API, loosely: a test that looks deeper says what it expects there. */
export interface KubeObject {
  readonly [key: string]: unknown;
  readonly kind?: string;
  /** Of a Status. */
  readonly message?: string;
  readonly metadata?: Readonly<Record<string, unknown>> & {
    readonly name?: string;
    readonly uid?: string;
    readonly resourceVersion?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec?: Readonly<Record<string, unknown>>;
  readonly status?: unknown;
  readonly data?: Readonly<Record<string, string>>;
}

export interface Kube {
  readonly kubeconfig: string;
  ask(method: string, path: string, ask?: Ask): Promise<Answer>;
  /** As `ask`, and throws unless the answer is 2xx. */
  must(method: string, path: string, ask?: Ask): Promise<KubeObject>;
  /** Runs kubectl and returns its standard output. Throws with its standard error. */
  kubectl(args: readonly string[], input?: string): string;
  /** Makes a namespace of a unique name; disposing of it deletes it, without waiting for its end. */
  namespace(prefix: string, labels?: Readonly<Record<string, string>>): Promise<TestNamespace>;
  close(): void;
}

export interface TestNamespace extends AsyncDisposable {
  readonly name: string;
}

const PATCH_TYPES = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
} as const;

const TIMEOUT_MS = 30_000;
const ADMIN: Identity = { kind: 'admin' };

export function openKube(kubeconfig: string, kubectl = 'kubectl'): Kube {
  const { server, ca, cert, key } = credentials(kubeconfig);
  const withCert = new Agent({ keepAlive: true, ca, cert, key });
  const bare = new Agent({ keepAlive: true, ca });

  const ask: Kube['ask'] = (method, path, { as = ADMIN, body, patch = 'merge' } = {}) =>
    new Promise((resolve, reject) => {
      const headers = {
        ...identityHeaders(as),
        ...(body !== undefined && { 'content-type': method === 'PATCH' ? PATCH_TYPES[patch] : 'application/json' }),
      };
      const agent = as.kind === 'token' ? bare : withCert;
      const sent = request(new URL(path, server), { method, agent, headers, timeout: TIMEOUT_MS }, (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('error', reject);
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            body: readBody(Buffer.concat(chunks).toString()),
            warnings: warningTexts(response.headers.warning),
          }),
        );
      });
      sent.on('timeout', () => sent.destroy(new Error(`${method} ${path}: no answer within ${TIMEOUT_MS} ms`)));
      sent.on('error', reject);
      sent.end(body === undefined ? undefined : JSON.stringify(body));
    });

  const must: Kube['must'] = async (method, path, asked) => {
    const answer = await ask(method, path, asked);
    if (answer.status >= 200 && answer.status < 300) return answer.body;
    throw new Error(`${method} ${path}: ${answer.status} ${answer.body.message ?? ''}`);
  };

  return {
    kubeconfig,
    ask,
    must,
    kubectl: (args, input) =>
      execFileSync(kubectl, ['--kubeconfig', kubeconfig, ...args], {
        encoding: 'utf8',
        ...(input !== undefined && { input }),
      }),
    async namespace(prefix, labels = {}) {
      const name = `${prefix}-${randomBytes(3).toString('hex')}`;
      await must('POST', '/api/v1/namespaces', { body: { metadata: { name, labels } } });
      return {
        name,
        async [Symbol.asyncDispose]() {
          await ask('DELETE', `/api/v1/namespaces/${name}`);
        },
      };
    },
    close() {
      withCert.destroy();
      bare.destroy();
    },
  };
}

function identityHeaders(as: Identity): Record<string, string | readonly string[]> {
  if (as.kind === 'admin') return {};
  if (as.kind === 'token') return { authorization: `Bearer ${as.token}` };
  const extra = Object.entries(as.extra ?? {}).map(([key, value]) => [
    `impersonate-extra-${encodeURIComponent(key)}`,
    value,
  ]);
  return {
    'impersonate-user': as.name,
    ...(as.groups !== undefined && { 'impersonate-group': as.groups }),
    ...Object.fromEntries(extra),
  };
}

function readBody(text: string): KubeObject {
  try {
    return JSON.parse(text) as KubeObject;
  } catch {
    return { message: text };
  }
}

/** Texts of `299 - "text"` headers, which Node joins by commas. */
function warningTexts(header: string | undefined): readonly string[] {
  return [...(header ?? '').matchAll(/299 \S+ "((?:[^"\\]|\\.)*)"/g)].map((match) =>
    (match[1] ?? '').replaceAll(/\\(.)/g, '$1'),
  );
}

interface Kubeconfig {
  readonly clusters: readonly { readonly cluster: Readonly<Record<string, string>> }[];
  readonly users: readonly { readonly user: Readonly<Record<string, string>> }[];
}

/** Server and client certificate of a kubeconfig with one cluster and one user. */
export function credentials(path: string) {
  const config = parse(readFileSync(path, 'utf8')) as Kubeconfig;
  const cluster = config.clusters[0]?.cluster ?? {};
  const user = config.users[0]?.user ?? {};
  const pem = (from: Readonly<Record<string, string>>, key: string) =>
    from[`${key}-data`] === undefined
      ? readFileSync(from[key] ?? '', 'utf8')
      : Buffer.from(from[`${key}-data`] ?? '', 'base64').toString();
  return {
    server: cluster.server ?? '',
    ca: pem(cluster, 'certificate-authority'),
    cert: pem(user, 'client-certificate'),
    key: pem(user, 'client-key'),
  };
}
