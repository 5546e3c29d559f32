/** What the programs themselves printed: the only witness of who ran when. Pure. */

export interface Printed {
  /** Pod UID. */
  readonly uid: string;
  readonly pod: string;
  readonly token: bigint;
  /** When it was printed, by the machine's clock, in milliseconds. */
  readonly at: number;
}

/** Reads a line of `kubectl logs --timestamps`, for example `2026-01-31T12:00:00.123456789Z token 4711: charged Ada`. */
export function parsePrinted(line: string, of: Pick<Printed, 'uid' | 'pod'>): Printed | undefined {
  const found = /^(\S+) token (\d+)(?::|$)/.exec(line.trimEnd());
  const [, time, token] = found ?? [];
  if (time === undefined || token === undefined) return undefined;
  const at = Date.parse(time);
  return Number.isNaN(at) ? undefined : { ...of, token: BigInt(token), at };
}

/** The lines printed after another program had printed a greater token: each is a write that a guard would refuse. */
export function staleLines(history: readonly Printed[]): readonly Printed[] {
  let greatest = 0n;
  return history
    .toSorted((a, b) => a.at - b.at)
    .filter(({ token }) => {
      if (token < greatest) return true;
      greatest = token;
      return false;
    });
}

/** When this token was printed for the first time. */
export function firstPrint(history: readonly Printed[], token: string): number | undefined {
  const times = history.filter((line) => line.token === BigInt(token)).map((line) => line.at);
  return times.length === 0 ? undefined : Math.min(...times);
}
