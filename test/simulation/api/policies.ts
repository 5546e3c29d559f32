/**
 * The rules of charts/kilit/templates/policies for Leases, Pods, locks and the token base, as far as the simulation can
 * meet them. Written from the CEL, rule by rule; test/cluster/policies shows what the CEL itself does.
 */
import {
  BREAK_ANNOTATION,
  BROKEN_HOLDER_ANNOTATION,
  HANDOVER_ANNOTATION,
  LEADER_LABEL,
  LOCK_FINALIZER,
  LOCK_LABEL,
  MODE_ANNOTATION,
  NODE_ANNOTATION,
  NOT_STARTED_ANNOTATION,
  ON_RENEWAL_FAILURE_ANNOTATION,
  POD_FINALIZER,
  QUEUED_AT_ANNOTATION,
  TAKEOVER_ANNOTATION,
  TOKEN_ANNOTATION,
  TOKEN_BASE_ANNOTATION,
  YIELD_ANNOTATION,
} from '../../../src/api/names.ts';
import { YieldReason } from '../../../src/api/reasons.ts';
import { sameJson } from '../../../src/core/json.ts';
import type { Obj, Resource, Who } from './objects.ts';
import { Refusal } from './objects.ts';

export interface AdmissionRequest {
  readonly operation: 'CREATE' | 'UPDATE' | 'DELETE';
  readonly resource: Resource;
  readonly subresource: '' | 'status';
  readonly object: Obj | undefined;
  readonly old: Obj | undefined;
  readonly who: Who;
  /** The operator's Namespace: the parameter of the Lease policy. */
  readonly params: Obj | undefined;
}

const TOKEN = /^(0|[1-9][0-9]{0,17})$/;
const BASE = /^(0|[1-9][0-9]{0,15})$/;
const TERM = /^(0|[1-9][0-9]{0,9})$/;
const UID = '[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}';
const HOLDER = new RegExp(`^([a-z0-9]([-.a-z0-9]*[a-z0-9])?_${UID}|break-${UID}_broken)$`);
const TERMS = ['kilit.dev/takeover-delay-seconds', 'kilit.dev/grace-seconds'];
const FIXED_TERMS = [
  ...TERMS,
  NODE_ANNOTATION,
  TAKEOVER_ANNOTATION,
  ON_RENEWAL_FAILURE_ANNOTATION,
  BROKEN_HOLDER_ANNOTATION,
];
const YIELD_REASONS: readonly string[] = Object.values(YieldReason);
/** Who has the verb `break` on locks. */
export const ADMINISTRATOR = 'alice';
const BASE_STEP = 100_000_000_000_000n;

/** @throws Refusal 422 in the words of the policy that refuses. */
export function admit(request: AdmissionRequest): void {
  switch (request.resource) {
    case 'leases':
      leaseName(request);
      if (request.operation !== 'DELETE') leasePolicy(request);
      return;
    case 'pods':
      if (request.operation !== 'DELETE') podPolicy(request);
      return;
    case 'distributedlocks':
      return lockPolicy(request);
    case 'namespaces':
      return basePolicy(request);
    default:
  }
}

const isOperator = (who: Who): boolean => who.kind === 'operator' && who.podUid !== undefined;
const isCollector = (who: Who): boolean => who.kind === 'collector';

function refuse(policy: string, message: string): never {
  throw new Refusal(422, 'Invalid', `ValidatingAdmissionPolicy '${policy}' denied request: ${message}`);
}

function leaseName({ operation, object, old, who }: AdmissionRequest): void {
  const name = (object ?? old)?.metadata.name ?? '';
  if (!name.startsWith('kilit.')) return;
  if (operation === 'DELETE') {
    if (!isOperator(who) && !isCollector(who)) refuse('kilit-lease-name', `${name} is deleted by the operator`);
  } else if (object?.metadata.labels?.[LOCK_LABEL] !== name.slice('kilit.'.length)) {
    refuse('kilit-lease-name', `${name}: wrong label`);
  }
}

interface LeaseSpec {
  readonly holderIdentity?: string;
  readonly acquireTime?: string;
  readonly renewTime?: string;
  readonly leaseDurationSeconds?: number;
  readonly leaseTransitions?: number;
}

/** What the token of a write must be; `none`: there is no right one. */
export function wantedToken(options: {
  readonly created: boolean;
  readonly granted: boolean;
  readonly oldToken: string;
  readonly base: string;
  readonly oldRevision: string;
}): string {
  const { created, granted, oldToken, base, oldRevision } = options;
  if (created) return '0';
  if (!granted) return oldToken;
  if (!BASE.test(base) || !TOKEN.test(oldToken)) return 'none';
  const byPrevious = BigInt(oldToken) + 1n;
  const byRevision = BigInt(oldRevision) + BigInt(base);
  return String(byPrevious > byRevision ? byPrevious : byRevision);
}

function leasePolicy({ operation, object, old, who, params }: AdmissionRequest): void {
  if (object === undefined || !object.metadata.name.startsWith('kilit.')) return;
  const deny = (message: string) => refuse('kilit-lease', `Lease ${object.metadata.name}: ${message}`);
  if (params === undefined) return deny('the parameter is missing');
  const spec = (object.spec ?? {}) as LeaseSpec;
  const oldSpec = (old?.spec ?? {}) as LeaseSpec;
  const created = operation === 'CREATE';
  const operator = isOperator(who);
  const base = params.metadata.annotations?.[TOKEN_BASE_ANNOTATION] ?? '0';
  const token = object.metadata.annotations?.[TOKEN_ANNOTATION] ?? '';
  const oldToken = created ? '0' : (old?.metadata.annotations?.[TOKEN_ANNOTATION] ?? '');
  const holder = spec.holderIdentity ?? '';
  const oldHolder = created ? '' : (oldSpec.holderIdentity ?? '');
  const granted = !created && holder !== '' && (holder !== oldHolder || spec.acquireTime !== oldSpec.acquireTime);
  const isHolder = oldHolder !== '' && oldHolder.endsWith(`_${who.podUid ?? 'none'}`);
  const wanted = wantedToken({ created, granted, oldToken, base, oldRevision: old?.metadata.resourceVersion ?? '0' });
  if (!BASE.test(base)) deny('the token base is invalid');
  if (!operator && !created && !isHolder) deny('only its holder renews or releases it, only the operator grants it');
  if (!operator && !created && isHolder && !onlyRenewed(object, old, { holder, oldHolder })) {
    deny('its holder may change renewTime, and set holderIdentity to "", and nothing else');
  }
  if (!operator && created) deny('it is made by the operator');
  if (created && holder !== '') deny('it must be created free');
  if (token !== wanted || !TOKEN.test(token)) deny(`the fencing token must be ${wanted}, got "${token}"`);
  if (granted) checkGrant({ object, spec, oldSpec, deny });
  const kept = !created && !granted && holder !== '';
  if (kept && operator && !isHolder && !termsKept(object, old))
    deny('the operator may not renew it or change its terms');
  if (kept && isHolder && spec.renewTime === spec.acquireTime) deny('renewTime must differ from acquireTime');
  if (holder !== '' && spec.renewTime === undefined) deny('renewTime must not be removed');
  checkYield({ object, old, granted, operator, deny });
}

/** A request to yield is about one grant: it comes after it, alone, and goes with the next. */
function checkYield(write: {
  readonly object: Obj;
  readonly old: Obj | undefined;
  readonly granted: boolean;
  readonly operator: boolean;
  readonly deny: (message: string) => void;
}): void {
  const { object, old, granted, operator, deny } = write;
  const { [YIELD_ANNOTATION]: asked, ...others } = object.metadata.annotations ?? {};
  const { [YIELD_ANNOTATION]: formerly, ...formerOthers } = old?.metadata.annotations ?? {};
  if (granted) return asked === undefined ? undefined : deny('a grant must remove kilit.dev/yield');
  if (asked === formerly) return;
  if (!YIELD_REASONS.includes(asked ?? '')) deny(`kilit.dev/yield must be a reason, got "${asked}"`);
  const isAlone =
    sameJson(object.spec, old?.spec) &&
    sameJson(others, formerOthers) &&
    sameJson(object.metadata.labels, old?.metadata.labels) &&
    sameJson(object.metadata.ownerReferences, old?.metadata.ownerReferences) &&
    sameJson(object.metadata.finalizers, old?.metadata.finalizers);
  const isHeld = ((object.spec ?? {}) as LeaseSpec).holderIdentity !== '';
  if (!operator || !isHeld || !isAlone) deny('kilit.dev/yield is written by the operator only, on a held Lease, alone');
}

function checkGrant(grant: {
  readonly object: Obj;
  readonly spec: LeaseSpec;
  readonly oldSpec: LeaseSpec;
  readonly deny: (message: string) => void;
}): void {
  const { object, spec, oldSpec, deny } = grant;
  if (!HOLDER.test(spec.holderIdentity ?? '')) deny('holderIdentity is not <pod name>_<pod uid>');
  const timesAreNew =
    spec.acquireTime !== undefined && spec.acquireTime !== oldSpec.acquireTime && spec.renewTime === spec.acquireTime;
  if (!timesAreNew) deny('a grant must set a new acquireTime and renewTime equal to it');
  const seconds = spec.leaseDurationSeconds ?? 0;
  if (seconds < 5 || seconds > 3600) deny('leaseDurationSeconds must be from 5 to 3600');
  const { annotations = {} } = object.metadata;
  if (TERMS.some((key) => !TERM.test(annotations[key] ?? ''))) deny('a grant must state its terms');
  if ((annotations[TAKEOVER_ANNOTATION] ?? 'PodGone') !== 'PodGone') deny('kilit.dev/takeover is PodGone or absent');
  const failure = annotations[ON_RENEWAL_FAILURE_ANNOTATION] ?? 'ContinueFenced';
  if (failure !== 'ContinueFenced') deny('kilit.dev/on-renewal-failure is ContinueFenced or absent');
}

function onlyRenewed(object: Obj, old: Obj | undefined, holders: { holder: string; oldHolder: string }): boolean {
  const [spec, oldSpec] = [(object.spec ?? {}) as LeaseSpec, (old?.spec ?? {}) as LeaseSpec];
  return (
    (holders.holder === holders.oldHolder || holders.holder === '') &&
    sameJson(object.metadata.labels, old?.metadata.labels) &&
    sameJson(object.metadata.annotations, old?.metadata.annotations) &&
    sameJson(object.metadata.ownerReferences, old?.metadata.ownerReferences) &&
    sameJson(object.metadata.finalizers, old?.metadata.finalizers) &&
    spec.leaseDurationSeconds === oldSpec.leaseDurationSeconds &&
    spec.acquireTime === oldSpec.acquireTime &&
    spec.leaseTransitions === oldSpec.leaseTransitions
  );
}

function termsKept(object: Obj, old: Obj | undefined): boolean {
  const [spec, oldSpec] = [(object.spec ?? {}) as LeaseSpec, (old?.spec ?? {}) as LeaseSpec];
  return (
    spec.renewTime === oldSpec.renewTime &&
    spec.leaseDurationSeconds === oldSpec.leaseDurationSeconds &&
    spec.leaseTransitions === oldSpec.leaseTransitions &&
    FIXED_TERMS.every((key) => object.metadata.annotations?.[key] === old?.metadata.annotations?.[key])
  );
}

/** kilit-pod and kilit-leader: what kilit writes on a Pod only kilit writes, and the token only grows. */
function podPolicy({ operation, object, old, who }: AdmissionRequest): void {
  const deny = (message: string) => refuse('kilit-pod', message);
  const created = operation === 'CREATE';
  const [marks, oldMarks] = [object?.metadata.annotations ?? {}, old?.metadata.annotations ?? {}];
  if (!created && object?.metadata.labels?.[LOCK_LABEL] !== old?.metadata.labels?.[LOCK_LABEL]) deny('label is fixed');
  if (!created && marks[MODE_ANNOTATION] !== oldMarks[MODE_ANNOTATION]) deny('mode is fixed');
  const [keeps, kept] = [object, old].map((each) => each?.metadata.finalizers?.includes(POD_FINALIZER) ?? false);
  if (keeps && !kept && (!isOperator(who) || created)) deny('the finalizer is put there by the operator only');
  if (kept && !keeps && !isOperator(who) && who.name !== ADMINISTRATOR)
    deny('the finalizer is removed by the operator');
  const forged = [TOKEN_ANNOTATION, QUEUED_AT_ANNOTATION, NOT_STARTED_ANNOTATION].some(
    (key) => marks[key] !== oldMarks[key],
  );
  if (forged && (!isOperator(who) || created)) deny('token and place are written by the operator only');
  const leaderMoved = object?.metadata.labels?.[LEADER_LABEL] !== old?.metadata.labels?.[LEADER_LABEL];
  if (leaderMoved && (!isOperator(who) || created)) refuse('kilit-leader', 'written by the operator only');
  const [token, oldToken] = [marks[TOKEN_ANNOTATION] ?? '', oldMarks[TOKEN_ANNOTATION] ?? ''];
  if (token !== oldToken && token !== '' && oldToken !== '' && BigInt(token) <= BigInt(oldToken)) {
    deny('the fencing token of a Pod only grows');
  }
}

interface LockStatus {
  readonly holder?: object;
  readonly fencingToken?: string;
  readonly conditions?: readonly { readonly type: string; readonly status: string }[];
}

/** kilit-lock, and the CRD's own rule that the token in the status never falls. */
function lockPolicy({ operation, subresource, object, old, who }: AdmissionRequest): void {
  if (operation === 'CREATE') return;
  const status = (old?.status ?? {}) as LockStatus;
  if (operation === 'DELETE') {
    const held =
      status.holder !== undefined || status.conditions?.some((c) => c.type === 'Held' && c.status === 'True') === true;
    const forced = old?.metadata.annotations?.['kilit.dev/force-delete'] === 'true';
    if (held && !forced && !isCollector(who)) refuse('kilit-lock', 'it is held');
    return;
  }
  if (subresource === 'status' && !isOperator(who)) refuse('kilit-lock', 'its status is written by the operator only');
  const hadFinalizer = old?.metadata.finalizers?.includes(LOCK_FINALIZER) === true;
  if (hadFinalizer && !isOperator(who) && !object?.metadata.finalizers?.includes(LOCK_FINALIZER)) {
    refuse('kilit-lock', 'its finalizer is removed by the operator');
  }
  checkRequests({ object, old, who });
  const next = (object?.status ?? {}) as LockStatus;
  if (status.fencingToken === undefined) return;
  if (next.fencingToken === undefined || BigInt(next.fencingToken) < BigInt(status.fencingToken)) {
    throw new Refusal(422, 'Invalid', '`fencingToken` must never fall');
  }
}

/** kilit-lock-request: who asks has the right to, says who he is, and names the token of the present grant. */
function checkRequests({ object, old, who }: Pick<AdmissionRequest, 'object' | 'old' | 'who'>): void {
  const deny = (message: string) => refuse('kilit-lock-request', message);
  for (const key of [BREAK_ANNOTATION, HANDOVER_ANNOTATION]) {
    const text = object?.metadata.annotations?.[key];
    if (text === old?.metadata.annotations?.[key]) continue;
    if (!isOperator(who) && who.name !== ADMINISTRATOR) deny(`${who.name} may not change ${key}`);
    if (text === undefined) continue;
    const { token, by } = JSON.parse(text) as { readonly token: string; readonly by: string };
    if (by !== who.name) deny(`${key} must be signed by who writes it`);
    if (token !== ((old?.status ?? {}) as LockStatus).fencingToken)
      deny(`${key} must name the token of the present grant`);
  }
}

function basePolicy({ operation, object, old }: AdmissionRequest): void {
  if (operation === 'CREATE') return;
  const base = object?.metadata.annotations?.[TOKEN_BASE_ANNOTATION] ?? '0';
  const oldBase = old?.metadata.annotations?.[TOKEN_BASE_ANNOTATION] ?? '0';
  if (!BASE.test(base) || BigInt(base) < BigInt(oldBase) || BigInt(base) - BigInt(oldBase) > BASE_STEP) {
    refuse('kilit-token-base', 'it only grows, by at most 10^14');
  }
}
