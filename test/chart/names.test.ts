/** The policies are written in CEL, which cannot import src/api/names.ts: here it is seen that both say the same. */
import { beforeAll, describe, expect, test } from 'vitest';
import * as exported from '../../src/api/names.ts';
import { renderChart } from '../../tools/generate/helm.ts';

const { leaseName: _, holderIdentity: __, ...names } = exported;

let rendered: string;
beforeAll(async () => {
  rendered = await renderChart({ tests: true, set: ['fencedLeases.enabled=true'] });
});

/** Keys that the chart knows and no program reads. */
const CHART_ONLY: ReadonlySet<string> = new Set([
  // Refused on a Pod, so that nobody believes that it is listened to.
  'kilit.dev/locks',
]);

/** Keys that no rule is about: whoever may write the object may write them. */
const NO_RULE: ReadonlySet<string> = new Set(['kilit.dev/refreshed']);

const texts: readonly string[] = Object.values(names).filter((value) => typeof value === 'string');

describe('the chart and src/api/names.ts', () => {
  test('know the same labels, annotations and finalizers', () => {
    const inChart = new Set(rendered.match(/kilit\.dev[/~1]+[a-z][-a-z]*/g)?.map((key) => key.replace('~1', '/')));
    const known = new Set<string>(texts.filter((text) => text.startsWith('kilit.dev/')));
    const versions = new Set(['kilit.dev/v']);
    expect([...inChart].filter((key) => !known.has(key) && !CHART_ONLY.has(key) && !versions.has(key))).toEqual([]);
    const unused = [...known].filter((key) => !inChart.has(key) && !NO_RULE.has(key));
    expect(unused).toEqual([]);
  });

  test.each(['SIDECAR_CONTAINER', 'RESET_CONTAINER', 'RUN_VOLUME', 'INFO_VOLUME', 'API_VOLUME'] as const)(
    '%s names the same thing',
    (name) => {
      expect(rendered).toContain(`name: "${names[name]}"`);
      expect(rendered).toContain(`'${names[name]}'`);
    },
  );

  test.each(['RUN_DIR', 'INFO_DIR', 'API_DIR'] as const)('%s is where it is mounted', (name) => {
    expect(rendered).toContain(`mountPath: "${names[name]}"`);
    expect(rendered).toContain(`m.mountPath == '${names[name]}'`);
  });

  test.each(['TOKEN_ENV', 'SOCKET_ENV'] as const)('%s is the variable that is injected', (name) => {
    expect(rendered).toContain(`env{name: "${names[name]}"`);
    expect(rendered).toContain(`e.name == '${names[name]}'`);
  });

  test('have one prefix of Leases, and strip it at the same length', () => {
    expect(rendered).toContain(`startsWith('${names.LEASE_PREFIX}')`);
    expect(rendered).toContain(`metadata.name.substring(${names.LEASE_PREFIX.length})`);
  });

  test('have one default port', () => {
    expect(rendered).toContain(`metadata.?annotations['${names.PORT_ANNOTATION}'].orValue('${names.DEFAULT_PORT}')`);
  });

  test('have one CRD', () => {
    expect(rendered).toContain(`name: ${names.PLURAL}.${names.GROUP}`);
    expect(rendered).toMatch(new RegExp(`names:\\s+kind: ${names.KIND}\\b`));
    expect(rendered).toContain(`- name: ${names.VERSION}`);
  });
});
