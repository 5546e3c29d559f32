import { afterAll, describe, expect, it } from 'vitest';
import { MUTATIONS } from './mutations/mutations.ts';
import { type Finding, MOST_SEEDS, search } from './mutations/search.ts';

const found: Finding[] = [];

afterAll(() => console.table(found));

describe('a planted fault is found', () => {
  it.each(MUTATIONS)('$name: $about', async ({ name }) => {
    const finding = await search(name);
    found.push(finding);
    expect(finding.seeds, `not found by ${MOST_SEEDS} seeds`).toBeDefined();
  });
});
