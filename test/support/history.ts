/**
 * What the programs of one lock did, as they wrote it themselves: one line every few milliseconds, all appended to one
 * file of this machine.
 *
 * The order of the lines is the order in which they were written, whoever wrote them: no clock is compared.
 */
export interface Line {
  readonly pod: string;
  /** One process: drawn anew at each start. */
  readonly life: string;
  /** `migrated`: written by an init container of the Pod's own. */
  readonly did: 'started' | 'migrated' | 'ran' | 'got SIGTERM';
  /** From the environment. */
  readonly token: string;
  /** From `/run/kilit/token`. */
  readonly file: string;
  /** Wall clock of this machine, milliseconds since 1970. */
  readonly at: number;
}

/** One process of a program, from its first to its last line. */
export interface Life {
  readonly pod: string;
  readonly life: string;
  readonly token: bigint;
  readonly file: string;
  readonly first: number;
  readonly last: number;
  /** Wall clock at its first and its last line, milliseconds since 1970. */
  readonly from: number;
  readonly to: number;
}

export function parseHistory(text: string): readonly Line[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as Line);
}

/** The lives in the order in which they started. A token that is no number counts as 0. */
export function livesOf(lines: readonly Line[]): readonly Life[] {
  const lives = new Map<string, Life>();
  for (const [index, line] of lines.entries()) {
    const token = /^[1-9][0-9]*$/.test(line.token) ? BigInt(line.token) : 0n;
    const begun = lives.get(line.life) ?? { ...line, token, first: index, from: line.at };
    lives.set(line.life, { ...begun, last: index, to: line.at });
  }
  return [...lives.values()];
}

/**
 * Everything that breaks the promise of a lock, as sentences.
 *
 * - each life's token is greater than all before; a life of the same Pod may keep it if `sameGrant` names that Pod;
 * - each life's token is the one in its file;
 * - no life writes after the first line of the next, unless `mayWriteLate` names its Pod (a frozen program).
 */
export function violations(
  lines: readonly Line[],
  { sameGrant, mayWriteLate }: { readonly sameGrant?: string; readonly mayWriteLate?: string } = {},
): readonly string[] {
  const lives = livesOf(lines);
  return lives.flatMap((life, index) => {
    const former = lives[index - 1];
    const name = `${life.pod}/${life.life} (token ${life.token})`;
    const wrong: string[] = [];
    if (life.token === 0n) wrong.push(`${name} started without a token`);
    if (life.file !== life.token.toString()) wrong.push(`${name} read '${life.file}' in its file`);
    if (former === undefined) return wrong;
    const keeps = former.pod === life.pod && life.pod === sameGrant;
    if (keeps ? life.token < former.token : life.token <= former.token) {
      wrong.push(`${name} started after ${former.pod}/${former.life} with token ${former.token}`);
    }
    for (const earlier of lives.slice(0, index)) {
      if (earlier.last > life.first && earlier.pod !== mayWriteLate) {
        wrong.push(
          `${earlier.pod}/${earlier.life} (token ${earlier.token}) wrote until ${earlier.to - life.from} ms after the start of ${name}`,
        );
      }
    }
    return wrong;
  });
}
