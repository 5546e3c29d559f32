/** The oldest and the newest server there is, for tests that need a server or a pooler of their own. */
import { SERVER_VERSIONS } from '../../support/postgres/index.ts';

export const EDGE_VERSIONS: readonly number[] = SERVER_VERSIONS.filter(
  (version) => version === SERVER_VERSIONS[0] || version === SERVER_VERSIONS.at(-1),
);
