import { GROUP, PLURAL } from '../api/names.ts';
import { ApiError } from '../kube/errors.ts';

/** What a fault of the API server means to a person and what to do; undefined: not one of the API server's. */
export function explain(err: unknown, at: { readonly server: string; readonly context: string }): string | undefined {
  if (!(err instanceof ApiError)) return undefined;
  if (err.status === 0) {
    return `[Unreachable] No answer from the API server ${at.server} (context '${at.context}'): ${rootOf(err)}. Is the cluster up, and is this the right context?`;
  }
  if (err.status === 401) {
    return `[Unauthorized] The API server ${at.server} does not accept these credentials (context '${at.context}'). Have they expired?`;
  }
  if (err.status === 403) return forbidden(err.message);
  if (isNotInstalled(err)) {
    return `[NotInstalled] This cluster knows no ${PLURAL}.${GROUP}: kilit is not installed here (context '${at.context}'). Install the chart, or choose another --context.`;
  }
  if (err.status === 409) {
    return `[Conflict] Somebody else wrote at the same moment; nothing was changed. Look again, and repeat the command. (${err.message})`;
  }
  return `[Refused] ${err.message}`;
}

/** A path that the API server does not serve: the answer is then no Status, or names no object. */
export const isNotInstalled = (err: unknown): boolean =>
  err instanceof ApiError &&
  err.status === 404 &&
  (err.reason === '' || err.message.includes('could not find the requested resource'));

const RIGHT =
  /User "(?<user>[^"]*)" cannot (?<verb>\S+) resource "(?<resource>[^"]*)" in API group "(?<group>[^"]*)"(?: in the namespace "(?<namespace>[^"]*)")?/;

/** Which right is missing, from the API server's own words. */
export function missingRight(message: string): string | undefined {
  const found = RIGHT.exec(message)?.groups;
  if (found === undefined) return undefined;
  const { user, verb, resource, group, namespace } = found;
  const what = group === '' ? resource : `${resource}.${group}`;
  return `'${user}' may not ${verb} ${what} ${namespace === undefined ? 'in the whole cluster' : `in namespace ${namespace}`}`;
}

function forbidden(message: string): string {
  const right = missingRight(message);
  if (right === undefined) return `[Forbidden] ${message}`;
  const hint = message.includes(`API group "${GROUP}"`)
    ? " The built-in role 'view' of a namespace lets read its locks, 'edit' lets declare them."
    : '';
  return `[Forbidden] ${right}. Ask for this right.${hint}`;
}

/** The innermost cause says what happened; what is around it says where, which is known. */
function rootOf(err: Error): string {
  let root: Error = err;
  while (root.cause instanceof Error) root = root.cause;
  const code = (root as NodeJS.ErrnoException).code;
  return root.message === '' ? (code ?? String(root)) : root.message;
}
