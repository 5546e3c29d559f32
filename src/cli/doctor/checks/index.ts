import type { Facts } from '../facts.ts';
import type { Finding } from '../finding.ts';
import { apiServer, crd, enforced, injection, nodes, policies } from './installation.ts';
import { mesh } from './mesh.ts';
import { operatorLeads, operatorRuns } from './operator.ts';
import { finalizers, hostPorts, injected, lockExists, reach } from './pods.ts';
import { containers, latency } from './timings.ts';
import { marks, revision, strayLeases } from './tokens.ts';

type Check = (facts: Facts) => readonly Finding[];

/** In the order in which a person should mend things. */
const CHECKS: readonly Check[] = [
  apiServer,
  crd,
  policies,
  enforced,
  injection,
  operatorRuns,
  operatorLeads,
  nodes,
  revision,
  marks,
  injected,
  lockExists,
  reach,
  hostPorts,
  mesh,
  containers,
  latency,
  strayLeases,
  finalizers,
];

export const diagnose = (facts: Facts): readonly Finding[] => CHECKS.flatMap((check) => check(facts));
