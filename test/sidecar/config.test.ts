import { describe, expect, test } from 'vitest';
import { readConfig } from '../../src/sidecar/config.ts';

const ENV = {
  KILIT_LOCK: 'billing',
  KILIT_NAMESPACE: 'shop',
  KILIT_POD_NAME: 'billing-0',
  KILIT_POD_UID: '2b0c5a1e-7d0f-4c1e-9c53-0a4f3a7d8f11',
  KILIT_MODE: 'gate',
  KILIT_PORT: '9911',
  KUBERNETES_SERVICE_HOST: '10.96.0.1',
  KUBERNETES_SERVICE_PORT: '443',
};

describe('settings', () => {
  test('are read as the policy injects them', () => {
    expect(readConfig(ENV)).toEqual({
      kind: 'valid',
      config: {
        lock: 'billing',
        namespace: 'shop',
        pod: { name: 'billing-0', uid: ENV.KILIT_POD_UID },
        mode: 'gate',
        port: 9911,
        api: { host: '10.96.0.1', port: 443, dir: '/var/run/secrets/kilit.dev' },
        runDir: '/run/kilit',
        infoDir: '/etc/kilit',
      },
    });
  });

  test('may be in standby mode, with an IPv6 service and folders of a test', () => {
    const env = {
      ...ENV,
      KILIT_MODE: 'standby',
      KUBERNETES_SERVICE_HOST: 'fd00::1',
      KILIT_DIR: '/tmp/run',
      KILIT_INFO_DIR: '/tmp/info',
      KILIT_API_DIR: '/tmp/api',
    };
    expect(readConfig(env)).toMatchObject({
      config: { mode: 'standby', api: { host: 'fd00::1', dir: '/tmp/api' }, runDir: '/tmp/run', infoDir: '/tmp/info' },
    });
  });

  test('report all faults at once', () => {
    const result = readConfig({});
    expect(result).toEqual({
      kind: 'invalid',
      message:
        '8 settings are wrong: KILIT_LOCK must be a name of at most 63 small letters, digits, - and ., got nothing; ' +
        'KILIT_NAMESPACE must be the name of a namespace, got nothing; KILIT_POD_NAME must be the name of a Pod, got nothing; ' +
        'KILIT_POD_UID must be the UID of a Pod, got nothing; KILIT_MODE must be gate or standby, got nothing; ' +
        'KILIT_PORT must be a port from 1 to 65535, got nothing; ' +
        'KUBERNETES_SERVICE_HOST must be a host name or address, got nothing; ' +
        'KUBERNETES_SERVICE_PORT must be a port from 1 to 65535, got nothing',
    });
  });

  test.each([
    ['KILIT_LOCK', ''],
    ['KILIT_LOCK', '../secrets'],
    ['KILIT_LOCK', 'a'.repeat(64)],
    ['KILIT_LOCK', 'Billing'],
    ['KILIT_NAMESPACE', 'a/b'],
    ['KILIT_POD_NAME', 'pod name'],
    ['KILIT_POD_UID', 'with_underscore'],
    ['KILIT_MODE', 'Gate'],
    ['KILIT_PORT', '0'],
    ['KILIT_PORT', '65536'],
    ['KILIT_PORT', '0x50'],
    ['KILIT_PORT', '80 '],
    ['KUBERNETES_SERVICE_HOST', 'a b'],
    ['KUBERNETES_SERVICE_PORT', '-1'],
  ])('refuse %s=%j, and name it with its value', (name, value) => {
    const result = readConfig({ ...ENV, [name]: value });
    expect(result).toMatchObject({
      kind: 'invalid',
      message: expect.stringContaining(`1 setting is wrong: ${name} must be`),
    });
    expect(result).toMatchObject({ message: expect.stringContaining(`'${value.slice(0, 100)}'`) });
  });

  test('refuse a folder whose socket no program could connect to', () => {
    expect(readConfig({ ...ENV, KILIT_DIR: `/${'x'.repeat(120)}` })).toMatchObject({ kind: 'invalid' });
  });
});
