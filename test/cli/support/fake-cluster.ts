/** An API server over plain objects, for the real command: get, list, merge patch with revisions, reviews. No policy. */
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { makeCertificate } from '../../sidecar/support/certificate.ts';
import { writeKubeconfig } from '../../support/kilit.ts';

interface FakeMetadata {
  readonly name: string;
  readonly namespace?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

interface FakeObject {
  readonly metadata: FakeMetadata;
  readonly [key: string]: unknown;
}

export interface FakeCluster extends AsyncDisposable {
  /** For the command's environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly server: string;
  /** PEM. */
  readonly ca: string;
  readonly requests: readonly string[];
  /** Puts an object into a collection, such as `/apis/kilit.dev/v1alpha1/distributedlocks`; its revision counts up. */
  put(collection: string, object: FakeObject): void;
  get(collection: string, name: string, namespace?: string): FakeObject | undefined;
  /** Answers requests whose `VERB path` matches with 403, in the API server's words. */
  forbid(pattern: RegExp): void;
  /** Called before each answer to a matching request, for what happens meanwhile. */
  before(pattern: RegExp, happens: () => void): void;
  /** Answers of SelfSubjectAccessReview. @default true */
  allowed: boolean;
}

const USER = 'alice';

export async function startFakeCluster({ namespace }: { readonly namespace?: string } = {}): Promise<FakeCluster> {
  const { cert, key } = makeCertificate();
  const collections = new Map<string, Map<string, FakeObject>>();
  const forbidden: RegExp[] = [];
  const hooks: { readonly pattern: RegExp; readonly happens: () => void }[] = [];
  const requests: string[] = [];
  let revision = 1000;

  const keyOf = (name: string, inNamespace?: string): string => `${inNamespace ?? ''}/${name}`;
  const put: FakeCluster['put'] = (collection, object) => {
    revision += 1;
    const { name, namespace: inNamespace } = object.metadata;
    const known = collections.get(collection) ?? new Map<string, FakeObject>();
    known.set(keyOf(name, inNamespace), {
      ...object,
      metadata: { ...object.metadata, resourceVersion: String(revision) },
    });
    collections.set(collection, known);
  };

  const answer = (verb: string, url: URL, body: string, response: ServerResponse): void => {
    const path = url.pathname;
    if (path === '/version') return send(response, 200, { major: '1', minor: '36', gitVersion: 'v1.36.3' });
    if (path.endsWith('/selfsubjectreviews')) return send(response, 201, { status: { userInfo: { username: USER } } });
    if (path.endsWith('/selfsubjectaccessreviews'))
      return send(response, 201, { status: { allowed: cluster.allowed } });
    if (path === '/apis/kilit.dev/v1alpha1' && collections.has(`${path}/distributedlocks`)) {
      return send(response, 200, { resources: [{ name: 'distributedlocks' }] });
    }
    const { collection, inNamespace, name } = place(path);
    const known = collections.get(collection);
    if (known === undefined) return send(response, 404, '404 page not found\n');
    if (name === undefined) {
      const items = [...known.values()].filter(
        ({ metadata }) => inNamespace === undefined || metadata.namespace === inNamespace,
      );
      return send(response, 200, { metadata: { resourceVersion: String(revision) }, items });
    }
    const present = known.get(keyOf(name, inNamespace));
    if (present === undefined) return fail(response, 404, 'NotFound', `${name} not found`);
    if (verb !== 'PATCH') return send(response, 200, present);
    const patch = JSON.parse(body) as FakeObject;
    if (patch.metadata.resourceVersion !== present.metadata.resourceVersion) {
      return fail(response, 409, 'Conflict', 'the object has been modified');
    }
    const annotations = { ...present.metadata.annotations, ...patch.metadata.annotations };
    put(collection, { ...present, metadata: { ...present.metadata, annotations } });
    return send(response, 200, known.get(keyOf(name, inNamespace)));
  };

  const serve = async (incoming: IncomingMessage, response: ServerResponse): Promise<void> => {
    let body = '';
    for await (const chunk of incoming) body += String(chunk);
    const { method = '', url = '' } = incoming;
    const line = `${method} ${url}`;
    requests.push(line);
    for (const { pattern, happens } of hooks) if (pattern.test(line)) happens();
    const parsed = new URL(url, 'https://fake');
    if (forbidden.some((pattern) => pattern.test(line))) return refuse(response, method, place(parsed.pathname));
    answer(method, parsed, body, response);
  };

  const server = createServer({ cert, key }, (incoming, response) => void serve(incoming, response));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = `https://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const kubeconfig = writeKubeconfig({
    server: address,
    ca: cert,
    token: 'secret',
    ...(namespace !== undefined && { namespace }),
  });
  const cluster: FakeCluster = {
    env: { KUBECONFIG: kubeconfig.path },
    server: address,
    ca: cert,
    requests,
    put,
    get: (collection, name, inNamespace) => collections.get(collection)?.get(keyOf(name, inNamespace)),
    forbid: (pattern) => void forbidden.push(pattern),
    before: (pattern, happens) => void hooks.push({ pattern, happens }),
    allowed: true,
    async [Symbol.asyncDispose]() {
      kubeconfig[Symbol.dispose]();
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return cluster;
}

interface Place {
  readonly collection: string;
  readonly inNamespace: string | undefined;
  readonly name: string | undefined;
}

/** Group and version, namespace, resource and name of a path. */
function place(path: string): Place {
  const found =
    /^(?<root>\/api\/v1|\/apis\/[^/]+\/[^/]+)(?:\/namespaces\/(?<ns>[^/]+)(?=\/))?\/(?<resource>[^/]+)(?:\/(?<name>[^/]+))?$/.exec(
      path,
    )?.groups ?? {};
  return { collection: `${found.root}/${found.resource}`, inNamespace: found.ns, name: found.name };
}

const VERBS: Readonly<Record<string, string>> = { GET: 'get', PATCH: 'patch', POST: 'create' };

function refuse(response: ServerResponse, method: string, { collection, inNamespace, name }: Place): void {
  const parts = collection.split('/');
  const resource = parts.at(-1);
  const group = parts[1] === 'api' ? '' : parts[2];
  const verb = method === 'GET' && name === undefined ? 'list' : VERBS[method];
  const where = inNamespace === undefined ? ' at the cluster scope' : ` in the namespace "${inNamespace}"`;
  const message = `${resource} is forbidden: User "${USER}" cannot ${verb} resource "${resource}" in API group "${group}"${where}`;
  fail(response, 403, 'Forbidden', message);
}

function send(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}

const fail = (response: ServerResponse, code: number, reason: string, message: string): void =>
  send(response, code, { kind: 'Status', status: 'Failure', code, reason, message });
