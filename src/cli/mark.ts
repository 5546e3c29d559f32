import { parseFencingToken } from '../core/token.ts';
import { Exit, Failure } from './failure.ts';
import type { Input, Option } from './options.ts';

/** The greatest token that a guard has seen. */
export interface Mark {
  readonly resource: string;
  readonly token: bigint;
}

export const MARK_OPTION: Option = {
  name: 'mark',
  value: 'RESOURCE=TOKEN',
  summary: "a guard's mark, such as shop/billing=4720; may be given several times",
};

/** How the marks of a PostgreSQL guard are read, in a form that `--mark` takes. */
export const MARKS_SQL = `psql "$DATABASE_URL" -Atc "select format('--mark=%s=%s', resource, token) from kilit.marks"`;

/** @throws Failure for what is no mark. */
export function marksOf(input: Input): readonly Mark[] {
  return (input.options.get('mark') ?? []).map((text) => {
    const at = text.lastIndexOf('=');
    const token = parseFencingToken(text.slice(at + 1));
    if (at > 0 && token !== undefined) return { resource: text.slice(0, at), token };
    throw new Failure(`--mark takes RESOURCE=TOKEN with a decimal token below 10^18, not '${text}'.`, {
      exit: Exit.usage,
    });
  });
}
