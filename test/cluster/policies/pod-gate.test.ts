/**
 * The injected parts of a Pod, each spoilt in turn: a manifest that was copied, edited and created again is refused.
 */
import { describe, expect, test } from 'vitest';
import { type Attack, outcome, useWorld } from './attempts.ts';
import { container, copied, creatingSpoilt, envOf, initContainer, inject, mountOf, type Pod } from './pods.ts';
import { openWorld } from './world.ts';

const at = useWorld(() => openWorld('pod'));

const spoilt: readonly (Omit<Attack, 'send' | 'as'> & { readonly spoil: (pod: Pod) => void })[] = [
  {
    name: 'the image of an older version',
    spoil: (pod) => {
      initContainer(pod, 'kilit').image = 'localhost/kilit:old';
    },
    refused:
      /image of kilit is localhost\/kilit:old instead of localhost\/kilit:dev\. Remove kilit-reset, kilit and the volumes/,
  },
  {
    name: 'another image of the reset',
    spoil: (pod) => {
      initContainer(pod, 'kilit-reset').image = 'example/nothing:1';
    },
    refused: /image of kilit-reset is example\/nothing:1/,
  },
  {
    name: 'a reset that resets nothing',
    spoil: (pod) => {
      initContainer(pod, 'kilit-reset').command = ['/usr/local/bin/node', '-e', '0'];
    },
    refused: /command of kilit-reset is another/,
  },
  {
    name: 'a sidecar with arguments',
    spoil: (pod) => {
      initContainer(pod, 'kilit').args = ['--verbose'];
    },
    refused: /command of kilit is another/,
  },
  {
    name: 'a lock written into the environment',
    spoil: (pod) => {
      const env = envOf(initContainer(pod, 'kilit'), 'KILIT_LOCK');
      if (env !== undefined) Object.assign(env, { value: 'other', valueFrom: undefined });
    },
    refused: /env of kilit does not take its identity from the Pod/,
  },
  {
    name: 'the UID of another Pod in the environment',
    spoil: (pod) => {
      const env = envOf(initContainer(pod, 'kilit'), 'KILIT_POD_UID');
      if (env !== undefined) Object.assign(env, { value: 'abc', valueFrom: undefined });
    },
    refused: /env of kilit does not take its identity from the Pod/,
  },
  {
    name: 'a second lock in the environment, which would win',
    spoil: (pod) => {
      initContainer(pod, 'kilit').env?.push({ name: 'KILIT_LOCK', value: 'other' });
    },
    refused: /env of kilit does not take its identity from the Pod/,
  },
  {
    name: 'mode standby told to the sidecar only',
    spoil: (pod) => {
      const env = envOf(initContainer(pod, 'kilit'), 'KILIT_MODE');
      if (env !== undefined) env.value = 'standby';
    },
    refused: /env of kilit does not take .* mode and port from its annotations/,
  },
  {
    name: 'a sidecar that is no sidecar',
    spoil: (pod) => {
      delete initContainer(pod, 'kilit').restartPolicy;
      delete initContainer(pod, 'kilit').restartPolicyRules;
      delete initContainer(pod, 'kilit').startupProbe;
    },
    refused: /do not restart the whole Pod on every exit code but 0/,
  },
  {
    name: 'a sidecar that restarts alone',
    spoil: (pod) => {
      initContainer(pod, 'kilit').restartPolicyRules = [];
    },
    refused: /do not restart the whole Pod on every exit code but 0/,
  },
  {
    name: 'a gate that is always open',
    spoil: (pod) => {
      delete initContainer(pod, 'kilit').startupProbe;
    },
    refused: /startup probe of kilit is not \/started on port 9911/,
  },
  {
    name: 'a liveness probe of the sidecar',
    spoil: (pod) => {
      initContainer(pod, 'kilit').livenessProbe = { httpGet: { path: '/started', port: 9911 } };
    },
    refused: /kilit has a lifecycle hook or a liveness probe/,
  },
  {
    name: 'an init container before the reset',
    spoil: (pod) => {
      pod.spec.initContainers.unshift({ name: 'early', image: 'example/early:1' });
    },
    refused: /must be the first init containers after those of a service mesh, got early, kilit-reset, kilit/,
  },
  {
    name: 'the sidecar before the reset',
    spoil: (pod) => {
      pod.spec.initContainers.reverse();
    },
    refused: /must be the first init containers after those of a service mesh, got kilit, kilit-reset/,
  },
  {
    name: 'no reset',
    spoil: (pod) => {
      pod.spec.initContainers.shift();
    },
    refused: /must be the first init containers after those of a service mesh, got kilit/,
  },
  {
    name: 'a token that may be missing',
    spoil: (pod) => {
      const ref = envOf(container(pod), 'FENCING_TOKEN')?.valueFrom?.fileKeyRef;
      if (ref !== undefined) ref.optional = true;
    },
    refused: /not gated by lock billing: container main must take FENCING_TOKEN by fileKeyRef/,
  },
  {
    name: 'a token from another file',
    spoil: (pod) => {
      const ref = envOf(container(pod), 'FENCING_TOKEN')?.valueFrom?.fileKeyRef;
      if (ref !== undefined) ref.path = 'mine';
    },
    refused: /not gated by lock billing: container main/,
  },
  {
    name: 'a program that can write the token file',
    spoil: (pod) => {
      const mount = mountOf(container(pod), 'kilit-run');
      if (mount !== undefined) mount.readOnly = false;
    },
    refused: /container main may mount kilit-run read-only and kilit-api not at all/,
  },
  {
    name: "a program with the sidecar's API token",
    spoil: (pod) => {
      container(pod).volumeMounts?.push({ name: 'kilit-api', mountPath: '/api', readOnly: true });
    },
    refused: /container main may mount kilit-run read-only and kilit-api not at all/,
  },
  {
    name: 'another socket',
    spoil: (pod) => {
      const env = envOf(container(pod), 'KILIT_SOCKET');
      if (env !== undefined) env.value = '/tmp/sock';
    },
    refused: /container main must mount kilit-run at \/run\/kilit and .* KILIT_SOCKET=\/run\/kilit\/sock/,
  },
];

describe('an injected Pod', () => {
  test.each(spoilt)('is not created again with $name', async ({ name, spoil, refused }) => {
    expect(await outcome(at.world, { name, as: 'editor', send: creatingSpoilt(spoil) })).toMatch(refused);
  });

  test('a refusal names every fault of the injected containers', async () => {
    const spoil = (pod: Pod) => {
      initContainer(pod, 'kilit').image = 'a';
      initContainer(pod, 'kilit-reset').image = 'b';
      delete initContainer(pod, 'kilit').startupProbe;
    };
    const refusal = await outcome(at.world, { name: 'three', as: 'editor', send: creatingSpoilt(spoil) });
    expect(refusal).toMatch(
      /image of kilit-reset is b instead of .*; image of kilit is a instead of .*; startup probe of kilit/,
    );
  });

  test('an injected Pod is as it was after being created again', async () => {
    const once = await inject(at.world);
    const twice = await inject(at.world, copied(once, 'probe') as never);
    expect(twice.spec).toEqual(once.spec);
  });
});
