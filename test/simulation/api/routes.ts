import { leaseName } from '../../../src/api/names.ts';
import { type Obj, RESOURCES, Refusal, type Resource, type Who } from './objects.ts';
import type { Draft, Store } from './store.ts';

interface Route {
  readonly resource: Resource | 'events';
  readonly namespace: string | undefined;
  readonly name: string | undefined;
  readonly subresource: '' | 'status';
  readonly query: URLSearchParams;
}

export interface HttpRequest {
  readonly verb: string;
  readonly path: string;
  readonly body?: unknown;
}

const PATH =
  /^\/(?:api\/v1|apis\/[^/]+\/[^/]+)(?:\/namespaces\/([^/?]+)(?=\/))?\/([a-z]+)(?:\/([^/?]+))?(?:\/(status))?(?:\?(.*))?$/;

const routes = new Map<string, Route>();

export function routeOf(path: string): Route {
  const known = routes.get(path);
  if (known !== undefined) return known;
  const [, namespace, resource = '', name, status, query = ''] = PATH.exec(path) ?? [];
  if (resource !== 'events' && !RESOURCES.includes(resource as Resource)) throw new Error(`No such path: ${path}`);
  const route: Route = {
    resource: resource as Resource,
    namespace,
    name,
    subresource: status === 'status' ? 'status' : '',
    query: new URLSearchParams(query),
  };
  if (routes.size < 10_000) routes.set(path, route);
  return route;
}

/** What the API server does with one request, at the moment in which it is carried out. @throws Refusal */
export function carryOut(store: Store, { verb, path, body }: HttpRequest, who: Who): unknown {
  const route = routeOf(path);
  const { resource, namespace, name, subresource, query } = route;
  if (resource === 'events') return {};
  if (who.kind === 'sidecar') authorize(store, route, who);
  // What arrives is JSON: whatever is undefined is not there.
  const sent = body === undefined ? undefined : JSON.parse(typeof body === 'string' ? body : JSON.stringify(body));
  switch (verb) {
    case 'GET':
      return name === undefined ? list(store, route, 0) : read(store, { resource, namespace, name });
    case 'POST':
      return store.create(resource, { ...sent, metadata: { namespace, ...sent.metadata } }, who, {
        dryRun: query.get('dryRun') === 'All',
      });
    case 'PUT':
      return store.update(
        resource,
        { namespace, name: name ?? '', subresource },
        (old) => (subresource === 'status' ? { ...old, status: sent.status } : sent),
        { who, ...preconditions(sent.metadata) },
      );
    case 'PATCH':
      return store.update(
        resource,
        { namespace, name: name ?? '', subresource },
        (old) => {
          const merged = merge(old, sent) as Draft & Obj;
          return subresource === 'status' ? { ...old, status: merged.status ?? {} } : merged;
        },
        { who, ...preconditions(sent.metadata ?? {}) },
      );
    case 'DELETE':
      return store.delete(
        resource,
        { namespace, name: name ?? '' },
        { who, graceSeconds: sent?.gracePeriodSeconds, ...preconditions(sent?.preconditions ?? {}) },
      );
    default:
      throw new Refusal(405, 'MethodNotAllowed', verb);
  }
}

export interface List {
  readonly metadata: { readonly resourceVersion: string };
  readonly items: readonly Obj[];
}

export function list(store: Store, { resource, query }: Route, agoMs: number): List {
  const { items, revision } = store.listOf(resource as Resource, agoMs);
  const name = query.get('fieldSelector')?.replace('metadata.name=', '');
  return {
    metadata: { resourceVersion: String(revision) },
    items: name === undefined ? items : items.filter((object) => object.metadata.name === name),
  };
}

function read(store: Store, target: { resource: Resource; namespace: string | undefined; name: string }): Obj {
  const object = store.get(target.resource, target.namespace, target.name);
  if (object === undefined) throw new Refusal(404, 'NotFound', `${target.name} not found`);
  return object;
}

/** A sidecar may use its lock's Lease as soon as the operator has made Role and RoleBinding. */
export function authorize(store: Store, route: Route, who: Who): void {
  const name = route.name ?? route.query.get('fieldSelector')?.replace('metadata.name=', '') ?? '';
  const allowed = ['roles', 'rolebindings'].every(
    (kind) => store.get(kind as Resource, route.namespace, name) !== undefined,
  );
  if (!allowed || name === leaseName('')) {
    throw new Refusal(403, 'Forbidden', `leases "${name}" is forbidden: ${who.name} cannot use it`);
  }
}

const preconditions = ({ uid, resourceVersion }: { uid?: string; resourceVersion?: string }) => ({
  uid,
  resourceVersion,
});

/** RFC 7386. */
function merge(target: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const base = typeof target === 'object' && target !== null && !Array.isArray(target) ? target : {};
  const merged: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete merged[key];
    else merged[key] = merge(merged[key], value);
  }
  return merged;
}
