/** Against an API server of a few lines: what it is asked, and when it is asked for a list again. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KubeConfig } from '@kubernetes/client-node';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type RawObject, WatchedCache } from '../../src/kube/cache.ts';
import type { KubeClient } from '../../src/kube/client.ts';
import { waitFor } from '../support/wait.ts';

const thing = (name: string, revision: number): RawObject => ({
  metadata: { name, uid: `uid-${name}`, resourceVersion: String(revision) },
});

/** What it was asked, in order: `list`, `probe` or `watch from N`. */
const asked: string[] = [];
const watches = new Set<ServerResponse>();
let items: readonly RawObject[] = [];
let revision = 0;
let refusal: number | undefined;
let stop: () => Promise<void> = () => Promise.resolve();
let cache: WatchedCache<RawObject, string>;
const wentBack: string[] = [];

function answer(request: IncomingMessage, response: ServerResponse): void {
  const { searchParams } = new URL(request.url ?? '', 'http://api');
  if (searchParams.get('watch') !== 'true') {
    asked.push(searchParams.has('limit') ? 'probe' : 'list');
    response.end(JSON.stringify({ metadata: { resourceVersion: String(revision) }, items }));
    return;
  }
  asked.push(`watch from ${searchParams.get('resourceVersion')}`);
  if (refusal !== undefined) {
    response.writeHead(refusal).end();
    refusal = undefined;
    return;
  }
  response.writeHead(200).flushHeaders();
  watches.add(response);
  response.on('close', () => watches.delete(response));
}

const send = (type: string, object: object) => {
  for (const watch of watches) watch.write(`${JSON.stringify({ type, object })}\n`);
};
const end = () => {
  for (const watch of watches) watch.end();
};
const watching = (times: number) =>
  waitFor(
    `watch ${times}`,
    () => asked.filter((each) => each.startsWith('watch')).length === times && watches.size === 1,
  );

beforeEach(async () => {
  asked.length = 0;
  wentBack.length = 0;
  items = [thing('a', 90)];
  revision = 100;
  const server = createServer(answer).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const config = new KubeConfig();
  config.loadFromOptions({
    clusters: [{ name: 'c', server: url, skipTLSVerify: true }],
    users: [{ name: 'u' }],
    contexts: [{ name: 'x', cluster: 'c', user: 'u' }],
    currentContext: 'x',
  });
  const client: KubeClient = {
    request: async <Answer>({ path }: { readonly path: string }) => (await (await fetch(url + path)).json()) as Answer,
    close() {},
  };
  const log = { warn() {}, debug() {} };
  const cancel = new AbortController();
  cache = new WatchedCache({ path: '/api/v1/things', view: (raw) => raw.metadata.resourceVersion });
  cache.onWentBack(({ from, to }) => wentBack.push(`${from} to ${to}`));
  stop = async () => {
    cancel.abort();
    server.closeAllConnections();
    server.close();
  };
  await cache.run({ config, client, log }, cancel.signal);
  await watching(1);
});
afterEach(() => stop());

describe('following a kind', () => {
  it('lists once and watches from there', async () => {
    send('ADDED', thing('b', 101));
    send('MODIFIED', thing('a', 102));
    await waitFor('both', () => cache.get('', 'a')?.view === '102' && cache.get('', 'b')?.view === '101');
    expect(asked).toEqual(['list', 'watch from 100']);
  });

  it('goes on from the last event when the API server ends the watch, lest the end of an object be missed', async () => {
    send('MODIFIED', thing('a', 102));
    await waitFor('the change', () => cache.get('', 'a')?.view === '102');
    revision = 105;
    end();
    await watching(2);
    send('DELETED', thing('a', 104));
    await waitFor('its end', () => cache.size === 0);
    expect(asked).toEqual(['list', 'watch from 100', 'probe', 'watch from 102']);
  });

  it('lists again when the API server has not reached what was seen, and tells', async () => {
    send('MODIFIED', thing('a', 120));
    await waitFor('the change', () => cache.get('', 'a')?.view === '120');
    end();
    await watching(2);
    expect(asked).toEqual(['list', 'watch from 100', 'probe', 'list', 'watch from 100']);
    expect(wentBack).toEqual(['120 to 100']);
    expect(cache.get('', 'a')?.view).toBe('90');
  });

  it('lists again when the watch broke, though the API server has gone past all that was seen', async () => {
    send('MODIFIED', thing('a', 120));
    await waitFor('the change', () => cache.get('', 'a')?.view === '120');
    revision = 500;
    for (const watch of watches) watch.destroy();
    await watching(2);
    expect(asked).toEqual(['list', 'watch from 100', 'list', 'watch from 500']);
    expect(wentBack).toEqual(['120 to 500']);
  });

  it.each([
    ['by an event', () => send('ERROR', { kind: 'Status', code: 410 })],
    [
      'by an answer',
      () => {
        refusal = 410;
      },
    ],
  ])('lists again when the revision is gone, %s', async (_name, disturb) => {
    disturb();
    revision = 300;
    end();
    await waitFor('second list', () => asked.filter((each) => each === 'list').length === 2);
    await waitFor('a watch from there', () => asked.at(-1) === 'watch from 300');
    expect(wentBack).toEqual([]);
  });
});
