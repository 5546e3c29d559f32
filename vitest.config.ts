import { defineConfig } from 'vitest/config';

const node = { environment: 'node' as const, globals: false };

/** `import 'kilit/…'` is the source here, as for `node --conditions=source` and for tsc: no build is needed. */
const ssr = { resolve: { conditions: ['source', 'module', 'node', 'development|production'] } };

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          ...node,
          name: 'unit',
          include: [
            'test/{cli,core,docs,sidecar,operator,leader-election,kube,package,tools,faults/judge}/**/*.test.ts',
          ],
          testTimeout: 30_000, // for a loaded machine: the property tests take a second each on a free one
        },
      },
      {
        test: {
          ...node,
          name: 'simulation',
          include: ['test/simulation/**/*.test.ts'],
          // After all others: it takes every core, and the cluster's tests measure times.
          sequence: { groupOrder: 2 },
          testTimeout: 600_000,
        },
      },
      { test: { ...node, name: 'chart', include: ['test/chart/**/*.test.ts'], testTimeout: 60_000 } },
      {
        ssr,
        test: {
          ...node,
          name: 'postgres',
          include: ['test/guards/**/*.test.ts'],
          maxWorkers: 2,
          sequence: { groupOrder: 1 }, // vitest wants one for each number of workers
          testTimeout: 60_000,
          hookTimeout: 60_000,
          globalSetup: ['test/support/postgres-setup.ts'],
        },
      },
      {
        test: {
          ...node,
          name: 'cluster',
          include: ['test/cluster/**/*.test.ts', 'test/faults/*.test.ts'],
          fileParallelism: false,
          testTimeout: 180_000,
          hookTimeout: 300_000,
          globalSetup: ['test/support/cluster-setup.ts'],
          setupFiles: ['test/support/tell-why-failed.ts'],
        },
      },
    ],
  },
});
