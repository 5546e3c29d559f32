import { afterEach, beforeEach, expect } from 'vitest';
import { aLease, type FakeApi, fail, startFakeApi } from './fake-api.ts';
import { eventually, IDENTITY, type SidecarOptions, type SidecarProcess, startSidecar } from './process.ts';

/** For tests of processes: leases last 1 or 2 s in them, so their limits are wide. */
export const TIMEOUT = { timeout: 20_000 };

export interface Harness {
  /** The server of the present test. */
  readonly api: FakeApi;
  start(options?: Partial<SidecarOptions>): Promise<SidecarProcess>;
  /** Until it watches the Lease. */
  startWaiting(options?: Partial<SidecarOptions>): Promise<SidecarProcess>;
  /** Until it holds token 123. */
  startHolding(options?: Partial<SidecarOptions> & { readonly seconds?: number }): Promise<SidecarProcess>;
  /** The bodies of all writes of the Lease so far. */
  puts(): { readonly spec: Record<string, unknown> }[];
  events(): Record<string, unknown>[];
  holder(): unknown;
  /** From now on writes fail, and reads work. */
  failWrites(): void;
}

/** The real program against a fake API server that knows one Lease, new for each test of the file that calls this. */
export function useHarness(): Harness {
  let api: FakeApi;
  let running: SidecarProcess[] = [];
  beforeEach(async () => {
    api = await startFakeApi();
    api.set(aLease());
  });
  afterEach(async () => {
    for (const sidecar of running) await sidecar[Symbol.asyncDispose]();
    running = [];
    await api[Symbol.asyncDispose]();
  });

  const start: Harness['start'] = async (options = {}) => {
    const sidecar = await startSidecar({ api, ...options });
    running.push(sidecar);
    return sidecar;
  };
  const startWaiting: Harness['startWaiting'] = async (options) => {
    const sidecar = await start(options);
    await eventually('it watches', async () => api.watches() === 1 && (await viewOf(sidecar)).state === 'waiting');
    return sidecar;
  };
  const bodies = (method: string) =>
    api.requests.filter((seen) => seen.method === method).map(({ body }) => JSON.parse(body));
  return {
    get api() {
      return api;
    },
    start,
    startWaiting,
    async startHolding({ seconds = 2, ...options } = {}) {
      const sidecar = await startWaiting(options);
      api.grant(IDENTITY, { token: '123', seconds });
      await eventually('it holds', async () => (await viewOf(sidecar)).state === 'held');
      return sidecar;
    },
    puts: () => bodies('PUT'),
    events: () => bodies('POST'),
    holder: () => api.lease()?.spec.holderIdentity,
    failWrites: () => api.fault((seen, response) => seen.method === 'PUT' && (fail(response, 503, 'no leader'), true)),
  };
}

export async function viewOf(sidecar: SidecarProcess): Promise<Record<string, unknown>> {
  return JSON.parse((await sidecar.ask('GET', '/v1/lock')).body) as Record<string, unknown>;
}

/** It ended as a loss must: non-zero, files gone, the reason written and counted. */
export async function expectStopped(sidecar: SidecarProcess, reason: string): Promise<void> {
  expect(await sidecar.exited).toEqual({ code: 1, signal: null });
  expect([sidecar.file('env'), sidecar.file('token')]).toEqual([undefined, undefined]);
  expect(sidecar.file('reason')).toMatch(new RegExp(`^${reason}: `));
  expect(sidecar.file('losses')).toBe('{"count":1}\n');
}
