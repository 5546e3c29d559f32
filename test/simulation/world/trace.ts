import { TOKEN_ANNOTATION } from '../../../src/api/names.ts';
import type { Change } from '../api/store.ts';
import type { VirtualTime } from './time.ts';

/** What happened, line by line. Only kept when somebody wants to read it: a run can always be made again. */
export class Trace {
  readonly lines: string[] = [];
  readonly #time: VirtualTime;
  readonly #isKept: boolean;

  constructor(time: VirtualTime, isKept: boolean) {
    this.#time = time;
    this.#isKept = isKept;
  }

  note(actor: string, text: () => string): void {
    if (this.#isKept) this.lines.push(`${(this.#time.now() / 1000).toFixed(3).padStart(9)}  ${actor}: ${text()}`);
  }

  change(change: Change): void {
    if (!this.#isKept) return;
    this.note(change.who.name, () => describe(change));
  }
}

function describe({ type, resource, object, old, revision }: Change): string {
  const head = `${type} ${resource}/${object.metadata.name} @${revision}`;
  const { annotations = {}, labels = {} } = object.metadata;
  switch (resource) {
    case 'leases': {
      const { holderIdentity, renewTime, acquireTime } = (object.spec ?? {}) as Record<string, string>;
      const holder = holderIdentity === '' ? 'nobody' : holderIdentity?.replace(/0{8}-0000-4000-8000-0{8}/, '');
      return `${head} holder ${holder} token ${annotations[TOKEN_ANNOTATION]} renewed ${renewTime?.slice(11)} acquired ${acquireTime?.slice(11)}`;
    }
    case 'pods': {
      const status = JSON.stringify(object.status) === JSON.stringify(old?.status) ? '' : ` ${podText(object.status)}`;
      const deleting = object.metadata.deletionTimestamp === undefined ? '' : ' deleting';
      return `${head}${deleting} token ${annotations[TOKEN_ANNOTATION]} queued ${annotations['kilit.dev/queued-at']} leader ${labels['kilit.dev/leader']}${status}`;
    }
    case 'distributedlocks':
      return `${head} ${JSON.stringify(object.status ?? {})}`;
    default:
      return head;
  }
}

interface ContainerText {
  readonly name: string;
  readonly state?: Readonly<Record<string, { readonly reason?: string }>>;
}

function podText(status: Readonly<Record<string, unknown>> | undefined): string {
  const containers = [
    ...((status?.initContainerStatuses ?? []) as ContainerText[]),
    ...((status?.containerStatuses ?? []) as ContainerText[]),
  ];
  const texts = containers.map(({ name, state = {} }) => {
    const [kind, detail] = Object.entries(state)[0] ?? ['none', {}];
    return `${name}=${kind}${detail.reason === undefined ? '' : `(${detail.reason})`}`;
  });
  const conditions = (status?.conditions ?? []) as { readonly reason?: string; readonly type: string }[];
  return `${String(status?.phase)} ${conditions.map((c) => c.reason ?? c.type).join(',')} ${texts.join(' ')}`;
}
