import type { KubeClient, KubeRequest } from '../../../src/kube/client.ts';
import { ApiError } from '../../../src/kube/errors.ts';
import type { Proc } from '../world/machine.ts';
import type { Link } from '../world/network.ts';
import type { Who } from './objects.ts';
import { carryOut } from './routes.ts';
import type { Store } from './store.ts';

const REQUEST_TIMEOUT_MS = 10_000;

/** The API server as the operator's requests see it. */
export function createOperatorClient(deps: {
  readonly proc: Proc;
  readonly link: Link;
  readonly store: Store;
  readonly who: Who;
}): KubeClient {
  const { proc, link, store, who } = deps;
  return {
    request<Answer>({ verb, path, body, timeoutMs = REQUEST_TIMEOUT_MS }: KubeRequest): Promise<Answer> {
      return new Promise((resolve, reject) => {
        const run = () => carryOut(store, { verb, path, body }, who) as Answer;
        const isWrite = verb !== 'GET' && !path.includes('dryRun');
        link.call({ proc, what: `${verb} ${path}`, isWrite, timeoutMs, run }, (outcome) => {
          if (outcome.kind === 'ok') return resolve(outcome.value);
          if (outcome.kind !== 'refused') return reject(new ApiError(0, 'Unreachable', `${verb} ${path}`));
          const { status, reason, message } = outcome.refusal;
          reject(new ApiError(status, reason, message));
        });
      });
    },
    close: () => {},
  };
}
