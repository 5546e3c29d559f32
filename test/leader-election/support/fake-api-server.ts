import {
  type LeaseRecord,
  type LeaseStore,
  LeaseStoreError,
  type StoredLease,
} from '../../../src/leader-election/index.ts';
import type { Machine } from './machine.ts';
import type { VirtualTime } from './virtual-time.ts';

/** What the network and the API server do to one request. */
export interface Fate {
  /** Seconds until the request is carried out; `Infinity`: it never arrives. */
  readonly requestSeconds: number;
  /** Seconds until the reply arrives; `Infinity`: it is lost. */
  readonly replySeconds: number;
  /** The API server answers 500 and does nothing. */
  readonly isRefused?: boolean;
}

export const PROMPT: Fate = { requestSeconds: 0.005, replySeconds: 0.005 };
export const LOST: Fate = { requestSeconds: Number.POSITIVE_INFINITY, replySeconds: 0 };
export const REPLY_LOST: Fate = { requestSeconds: 0.005, replySeconds: Number.POSITIVE_INFINITY };

export interface Write {
  readonly writer: string;
  readonly atSeconds: number;
  readonly record: LeaseRecord;
  readonly previous: LeaseRecord | undefined;
}

/** The one Lease, as the API server has it. */
export interface FakeApiServer {
  lease(): StoredLease | undefined;
  readonly writes: readonly Write[];
  requests(): number;
  remove(): void;
  /** A write by a third party that leaves the spec alone. */
  label(): void;
  put(record: LeaseRecord): void;
  storeFor(writer: string, machine: Machine, fate: (verb: Verb) => Fate): LeaseStore;
}

export type Verb = 'get' | 'create' | 'update';

export function createFakeApiServer(time: VirtualTime, onWrite: (write: Write) => void = () => {}): FakeApiServer {
  let revision = 100;
  let lease: StoredLease | undefined;
  let requests = 0;
  const writes: Write[] = [];

  function put(record: LeaseRecord): StoredLease {
    revision += 1;
    lease = { resourceVersion: String(revision), record };
    return lease;
  }

  function write(writer: string, record: LeaseRecord): StoredLease {
    const entry = { writer, atSeconds: time.now(), record, previous: lease?.record };
    writes.push(entry);
    onWrite(entry);
    return put(record);
  }

  function get(): StoredLease {
    if (lease === undefined) throw new LeaseStoreError('NotFound', 'No such Lease.');
    return lease;
  }

  function create(writer: string, record: LeaseRecord): StoredLease {
    if (lease !== undefined) throw new LeaseStoreError('AlreadyExists', 'The Lease exists.');
    return write(writer, record);
  }

  function update(writer: string, record: LeaseRecord, resourceVersion: string): StoredLease {
    const stored = get();
    if (stored.resourceVersion !== resourceVersion) throw new LeaseStoreError('Conflict', 'The Lease has changed.');
    // As the API server: an update that changes nothing makes no new revision.
    return JSON.stringify(stored.record) === JSON.stringify(record) ? stored : write(writer, record);
  }

  function storeFor(writer: string, machine: Machine, fateOf: (verb: Verb) => Fate): LeaseStore {
    function send(verb: Verb, carryOut: () => StoredLease, signal: AbortSignal): Promise<StoredLease> {
      requests += 1;
      const fate = fateOf(verb);
      return new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
        if (fate.requestSeconds === Number.POSITIVE_INFINITY) return;
        time.after(fate.requestSeconds, () => {
          const settle = outcome(fate, carryOut, { resolve, reject });
          if (fate.replySeconds === Number.POSITIVE_INFINITY) return;
          time.after(fate.replySeconds, () => machine.deliver(settle));
        });
      });
    }
    return {
      get: (signal) => send('get', get, signal),
      create: (record, signal) => send('create', () => create(writer, record), signal),
      update: (record, resourceVersion, signal) =>
        send('update', () => update(writer, record, resourceVersion), signal),
    };
  }

  return {
    lease: () => lease,
    writes,
    requests: () => requests,
    remove: () => {
      lease = undefined;
    },
    label: () => {
      if (lease !== undefined) put(lease.record);
    },
    put,
    storeFor,
  };
}

function outcome(
  fate: Fate,
  carryOut: () => StoredLease,
  { resolve, reject }: { resolve: (lease: StoredLease) => void; reject: (error: unknown) => void },
): () => void {
  if (fate.isRefused) return () => reject(new Error('500 Internal Server Error'));
  try {
    const lease = carryOut();
    return () => resolve(lease);
  } catch (error) {
    return () => reject(error);
  }
}
