import { describe, expect, it } from 'vitest';
import { readConfig } from '../../src/operator/config.ts';

const good = { POD_NAME: 'kilit-1', POD_NAMESPACE: 'kilit-system', POD_UID: 'u' };

describe('the settings of the operator', () => {
  it('have defaults for all but the identity', () => {
    expect(readConfig(good)).toEqual({
      podName: 'kilit-1',
      namespace: 'kilit-system',
      podUid: 'u',
      port: 8080,
      logLevel: 'info',
      kubeconfigPath: undefined,
      workers: 8,
    });
  });

  it('are refused with all faults at once', () => {
    const wrong = { POD_NAME: 'kilit-1', KILIT_HTTP_PORT: '70000', KILIT_WORKERS: '1e3', LOG_LEVEL: 'loud' };
    expect(() => readConfig(wrong)).toThrow(
      '5 settings are wrong: LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent, got loud; ' +
        'POD_NAMESPACE is missing; the chart sets it by the downward API; POD_UID is missing; the chart sets it by the downward API; ' +
        'KILIT_HTTP_PORT must be a whole number from 1 to 65535, got 70000; KILIT_WORKERS must be a whole number from 1 to 64, got 1e3',
    );
  });
});
