/** Checks of the operator itself. Pure. */
import type { Facts } from '../facts.ts';
import { type Finding, fail, ok, onRead, warn } from '../finding.ts';

const WITHOUT = 'Held locks stay held; nothing is granted, and no status is written.';

export function operatorRuns({ operator, cliVersion }: Facts): readonly Finding[] {
  const check = 'operator';
  return onRead(check, operator.deployments, (deployments) => {
    const [deployment, ...others] = deployments;
    if (deployment === undefined) {
      const todo = 'Install the chart, or look for it: kubectl get deploy -A -l app.kubernetes.io/part-of=kilit.';
      return [fail(check, { says: 'There is no Deployment of the operator.', means: WITHOUT, todo })];
    }
    const { name, namespace, labels } = deployment.metadata;
    const [wanted, ready] = [deployment.spec?.replicas ?? 1, deployment.status?.readyReplicas ?? 0];
    const where = `Deployment ${namespace}/${name}`;
    const see = `See: kubectl get pods -n ${namespace}; kubectl logs deployment/${name} -n ${namespace}.`;
    const findings: Finding[] = [];
    if (others.length > 0) {
      findings.push(
        fail(check, {
          says: `There are ${deployments.length} Deployments of the operator.`,
          means: 'The policies know one operator; the others are refused.',
          todo: 'Uninstall all but one.',
        }),
      );
    }
    if (ready === 0)
      findings.push(fail(check, { says: `${where}: none of ${wanted} replicas is ready.`, means: WITHOUT, todo: see }));
    else if (ready < wanted) {
      const means = 'Fewer stand by: after the loss of the active one grants may be late.';
      findings.push(warn(check, { says: `${where}: ${ready} of ${wanted} replicas are ready.`, means, todo: see }));
    }
    const version = labels?.['app.kubernetes.io/version'] ?? 'unknown';
    if (version !== cliVersion) {
      findings.push(
        warn(check, {
          says: `The chart is version ${version}, this command ${cliVersion}.`,
          means: 'The command may not know what the operator does, nor the operator what it asks for.',
          todo: `Use kilit ${version}, or upgrade the chart.`,
        }),
      );
    }
    return findings.length > 0
      ? findings
      : [ok(check, `${where}: ${ready} of ${wanted} replicas are ready, version ${version}`)];
  });
}

/** By change, not by time: the clocks of two machines are never compared. */
export function operatorLeads({ operator }: Facts): readonly Finding[] {
  const check = 'operator-leader';
  return onRead(check, operator.election, ({ before, after, watchedSeconds }) => {
    const holder = after.spec?.holderIdentity ?? '';
    const leader = holder.split('_')[0] ?? '';
    if (holder === '') {
      const todo = 'See the logs of the operator.';
      return [fail(check, { says: 'No operator is elected.', means: WITHOUT, todo })];
    }
    if (before.spec?.renewTime === after.spec?.renewTime) {
      return [
        fail(check, {
          says: `Operator ${leader} did not renew its own Lease in ${Math.round(watchedSeconds)} s.`,
          means: `The active operator is gone or cut off. ${WITHOUT}`,
          todo: 'Another takes over within about 12 s if one runs; see the logs of the operator.',
        }),
      ];
    }
    return [ok(check, `${leader} is elected and renewed within ${Math.ceil(watchedSeconds)} s`)];
  });
}
