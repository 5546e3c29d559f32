/** Are two JSON values the same? Properties that are undefined count as absent. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) return Array.isArray(a) && Array.isArray(b) && sameItems(a, b);
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  let surplus = 0;
  for (const key of Object.keys(left)) {
    if (left[key] === undefined) continue;
    if (!Object.hasOwn(right, key) || !sameJson(left[key], right[key])) return false;
    surplus -= 1;
  }
  for (const key of Object.keys(right)) if (right[key] !== undefined) surplus += 1;
  return surplus === 0;
}

const sameItems = (a: readonly unknown[], b: readonly unknown[]): boolean =>
  a.length === b.length && a.every((item, index) => sameJson(item, b[index]));
