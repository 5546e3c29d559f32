/**
 * Kubernetes' MicroTime: RFC 3339 in UTC with **exactly six** fraction digits, as text.
 *
 * A `Date` has milliseconds and `toISOString()` earns HTTP 400 (kubernetes-client/javascript#828), so times are kept as
 * microseconds since 1970 in a `bigint`.
 */

const PATTERN = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.(\d{6})Z$/;
const MICROS_PER_SECOND = 1_000_000n;
/** 9999-12-31T23:59:59.999999Z, the last that four digits of a year can write. */
const LATEST = 253_402_300_799_999_999n;

/** Writes microseconds since 1970 as a MicroTime. Throws a RangeError outside the years 1970 to 9999. */
export function formatMicroTime(micros: bigint): string {
  if (micros < 0n || micros > LATEST)
    throw new RangeError(`MicroTime must lie between 1970 and 9999, got ${micros} µs`);
  const seconds = new Date(Number(micros / MICROS_PER_SECOND) * 1000).toISOString().slice(0, 19);
  return `${seconds}.${String(micros % MICROS_PER_SECOND).padStart(6, '0')}Z`;
}

/** Reads a MicroTime as the API server writes it; anything else, a 30 February too, is `undefined`. */
export function parseMicroTime(text: string): bigint | undefined {
  const [, seconds, fraction] = PATTERN.exec(text) ?? [];
  if (seconds === undefined || fraction === undefined) return undefined;
  const millis = Date.parse(`${seconds}Z`);
  if (Number.isNaN(millis) || millis < 0) return undefined;
  const micros = BigInt(millis) * 1000n + BigInt(fraction);
  return formatMicroTime(micros) === text ? micros : undefined;
}

/**
 * The first MicroTime from `wish` on that is none of `taken`.
 *
 * A renewal must change the Lease: a write that changes nothing keeps the revision, and the operator would see no
 * renewal although the holder got a good reply. So a clock that stands still or steps back must not repeat a time.
 */
export function differentMicroTime(wish: bigint, taken: readonly string[]): string {
  let micros = wish;
  // Each step leaves one of `taken` behind, so this ends after `taken.length` steps.
  while (taken.includes(formatMicroTime(micros))) micros = micros === LATEST ? 0n : micros + 1n;
  return formatMicroTime(micros);
}
