import type { ApiClient, ApiReply, StreamEnd } from '../../../src/sidecar/api-client.ts';
import type { Proc } from '../world/machine.ts';
import type { Link, Outcome } from '../world/network.ts';
import type { Random } from '../world/random.ts';
import { type Obj, Refusal, type Resource, type Who } from './objects.ts';
import { authorize, carryOut, routeOf } from './routes.ts';
import type { Change, Store } from './store.ts';

const CONNECT_TIMEOUT_MS = 10_000;

export interface SidecarApi extends ApiClient {
  /** Ends the watches, by the end of the answer or by an event that says that the revision is too old. */
  breakWatches(expired: boolean): void;
}

/** The API server as a sidecar sees it: JSON texts over a network that does what it likes. */
export function createSidecarApi(deps: {
  readonly proc: Proc;
  readonly link: Link;
  readonly store: Store;
  readonly who: Who;
  readonly random: Random;
}): SidecarApi {
  const { proc, link, store, who, random } = deps;
  const time = proc.machine.time;
  const streams = new Set<(end: StreamEnd | 'expired') => void>();

  const send: ApiClient['send'] = ({ method, path, body, timeoutMs }) =>
    new Promise((resolve) => {
      const isWrite = method !== 'GET';
      const run = () => textOf(carryOut(store, { verb: method, path, body }, who) as object);
      link.call({ proc, what: `${method} ${path}`, isWrite, timeoutMs, run }, (outcome) => resolve(toReply(outcome)));
    });

  const stream: ApiClient['stream'] = ({ path, onLine }) =>
    new Promise((resolve) => {
      const route = routeOf(path);
      const name = route.query.get('fieldSelector')?.replace('metadata.name=', '') ?? '';
      const from = Number(route.query.get('resourceVersion') ?? '0');
      let isOver = false;
      let stopWatch = () => {};
      const finish = (end: StreamEnd) => {
        if (isOver) return;
        isOver = true;
        stopWatch();
        streams.delete(interrupt);
        resolve(end);
      };
      const interrupt = (end: StreamEnd | 'expired') => {
        if (end !== 'expired') return finish(end);
        if (!isOver) onLine(JSON.stringify({ type: 'ERROR', object: { code: 410 } }));
        finish({ kind: 'ended' });
      };
      let lastAt = 0;
      const take = (change: Change) => {
        if (change.object.metadata.name !== name) return;
        lastAt = Math.max(lastAt + 0.001, time.now() + link.lagMs());
        const isRepeated = random.chance(0.02);
        time.at(lastAt, () => {
          if (isOver) return;
          if (link.has('cut')) {
            const brokenAfter = random.between(100, 20_000);
            stopWatch();
            time.after(brokenAfter, () => proc.deliver(() => finish({ kind: 'failed', message: 'reset by peer' })));
            return;
          }
          proc.deliver(() => {
            if (isOver) return;
            const line = `{"type":"${change.type}","object":${textOf(change.object)}}`;
            const goesOn = onLine(line) && (!isRepeated || onLine(line));
            if (!goesOn) finish({ kind: 'ended' });
          });
        });
      };
      link.call(
        {
          proc,
          what: `WATCH ${route.resource}`,
          isWrite: false,
          timeoutMs: CONNECT_TIMEOUT_MS,
          run: () => {
            authorize(store, route, who);
            if (random.chance(0.02)) throw new Refusal(410, 'Expired', 'too old resource version');
          },
        },
        (outcome) => {
          if (outcome.kind !== 'ok') return finish(toEnd(outcome));
          streams.add(interrupt);
          for (const change of store.changesSince(route.resource as Resource, from)) take(change);
          stopWatch = store.watch(route.resource as Resource, (change) => {
            if (proc.alive) take(change);
            else stopWatch();
          });
        },
      );
    });

  return {
    send,
    stream,
    close: () => {},
    breakWatches(expired) {
      for (const interrupt of streams) {
        proc.deliver(() => interrupt(expired ? 'expired' : { kind: 'ended' }));
      }
    },
  };
}

function toReply(outcome: Outcome<string>): ApiReply {
  switch (outcome.kind) {
    case 'ok':
      return { kind: 'answer', status: 200, body: outcome.value };
    case 'refused':
      return { kind: 'answer', status: outcome.refusal.status, body: bodyOf(outcome.refusal) };
    case 'failed':
      return { kind: 'failed', message: 'ECONNREFUSED' };
    default:
      return { kind: 'timedOut' };
  }
}

function toEnd(outcome: Exclude<Outcome<void>, { kind: 'ok' }>): StreamEnd {
  switch (outcome.kind) {
    case 'refused':
      return { kind: 'refused', status: outcome.refusal.status, body: bodyOf(outcome.refusal) };
    case 'failed':
      return { kind: 'failed', message: 'ECONNREFUSED' };
    default:
      return { kind: 'stalled' };
  }
}

const bodyOf = ({ message, reason }: Refusal): string => JSON.stringify({ kind: 'Status', message, reason });

/** Objects never change, so each is written as text once. */
const texts = new WeakMap<object, string>();

function textOf(object: Obj | object): string {
  const known = texts.get(object);
  if (known !== undefined) return known;
  const text = JSON.stringify(object);
  texts.set(object, text);
  return text;
}
