import { expect, test } from 'vitest';
import { createLeaderElector, ElectionError } from '../../src/leader-election/index.ts';
import { type ElectionOptions, electionSettings } from '../../src/leader-election/settings.ts';
import { createFakeApiServer } from './support/fake-api-server.ts';
import { createMachine } from './support/machine.ts';
import { createVirtualTime } from './support/virtual-time.ts';

const PREFIX = '[InvalidConfig] 1 setting is wrong: ';

test.each<[Partial<ElectionOptions>, string]>([
  [{ identity: ' ' }, 'identity must not be empty'],
  [{ leaseDurationSeconds: 15.5 }, 'leaseDurationSeconds must be a whole number from 1 to 3600, got 15.5'],
  [{ leaseDurationSeconds: 3601 }, 'leaseDurationSeconds must be a whole number from 1 to 3600, got 3601'],
  [{ leaseDurationSeconds: 10 }, 'leaseDurationSeconds must be at least 1.1 × renewDeadlineSeconds (11), got 10'],
  [{ renewDeadlineSeconds: 2.4 }, 'renewDeadlineSeconds must be above 1.2 × retryPeriodSeconds (2.4), got 2.4'],
  [{ renewDeadlineSeconds: Number.NaN }, 'renewDeadlineSeconds must be above 0 and at most 3600, got NaN'],
  [{ requestTimeoutSeconds: 2 }, 'requestTimeoutSeconds must be below retryPeriodSeconds (2), got 2'],
  [{ stopTimeoutSeconds: 0 }, 'stopTimeoutSeconds must be above 0 and at most 3600, got 0'],
])('refuses %o', (options, message) => {
  expect(() => electionSettings({ identity: 'a', ...options })).toThrow(PREFIX + message);
});

test('accepts the shortest lease for its deadline', () => {
  expect(electionSettings({ identity: 'a', leaseDurationSeconds: 11 })).toEqual({
    identity: 'a',
    leaseDurationSeconds: 11,
    renewDeadlineSeconds: 10,
    retryPeriodSeconds: 2,
    requestTimeoutSeconds: 1.8,
    stopTimeoutSeconds: 20,
  });
});

test('names all faults at once, when the elector is made', () => {
  const time = createVirtualTime();
  const { clock } = createMachine(time);
  const store = createFakeApiServer(time).storeFor('a', createMachine(time), () => ({
    requestSeconds: 0,
    replySeconds: 0,
  }));
  const log = { debug() {}, info() {}, warn() {} };
  const create = () =>
    createLeaderElector(
      { store, clock, random: Math.random, log },
      { identity: '', retryPeriodSeconds: 9, stopTimeoutSeconds: -1 },
    );
  expect(create).toThrow(ElectionError);
  expect(create).toThrow(
    '[InvalidConfig] 3 settings are wrong: identity must not be empty; ' +
      'stopTimeoutSeconds must be above 0 and at most 3600, got -1; ' +
      'renewDeadlineSeconds must be above 1.2 × retryPeriodSeconds (10.8), got 10',
  );
});
