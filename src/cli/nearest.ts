const MAX_EDITS = 2;

/** The name that was probably meant, or undefined. */
export function nearestOf(names: readonly string[], word: string): string | undefined {
  const near = names.map((name) => ({ name, edits: distance(name, word) })).filter(({ edits }) => edits <= MAX_EDITS);
  return near.toSorted((a, b) => a.edits - b.edits)[0]?.name;
}

/** Edits from one word to the other (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
