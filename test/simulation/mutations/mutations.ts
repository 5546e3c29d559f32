/** One change of one file: `find` must be there exactly once. */
interface Edit {
  /** From the root of the repository. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A planted fault: what somebody could have written instead. */
export interface Mutation {
  readonly name: string;
  readonly about: string;
  readonly edits: readonly Edit[];
}

const one = (name: string, about: string, file: string, [find, replace]: readonly [string, string]): Mutation => ({
  name,
  about,
  edits: [{ file, find, replace }],
});

/**
 * Faults of the code and of the policies that the simulation must find.
 *
 * They are written into the source text while a worker loads it (`hooks.ts`), so the code has no switches for them. When
 * an edit does not fit any more, the code that it is about has changed: write the same fault anew.
 */
export const MUTATIONS: readonly Mutation[] = [
  {
    name: 'token-floor',
    about: 'the token base is a floor, taken by maximum, in code and policy',
    edits: [
      {
        file: 'src/core/token.ts',
        find: 'BigInt(lease.resourceVersion) + lease.base',
        replace: '(BigInt(lease.resourceVersion) > lease.base ? BigInt(lease.resourceVersion) : lease.base)',
      },
      {
        file: 'test/simulation/api/policies.ts',
        find: 'BigInt(oldRevision) + BigInt(base)',
        replace: '(BigInt(oldRevision) > BigInt(base) ? BigInt(oldRevision) : BigInt(base))',
      },
    ],
  },
  one(
    'deadline-from-reply',
    'the deadline counts from the reply instead of from the sending',
    'src/core/holder-reply.ts',
    ['const deadline = deadlineAt(sentAt, leaseDurationMs)', 'const deadline = deadlineAt(now, leaseDurationMs)'],
  ),
  one('release-on-sigterm', 'the sidecar releases when it gets SIGTERM', 'src/core/holder.ts', [
    'return stop(state, event, LossReason.Terminated)',
    "return state.kind === 'holding' ? giveBack(state, event) : stop(state, event, LossReason.Terminated)",
  ]),
  one('death-by-deletion', 'a deletionTimestamp counts as a death', 'src/core/pod.ts', [
    'confirmedDead: isConfirmedDead(pod)',
    'confirmedDead: isConfirmedDead(pod) || metadata.deletionTimestamp !== undefined',
  ]),
  one('wall-clock-sidecar', 'the sidecar lives by the wall clock', 'src/sidecar/clock.ts', [
    'return elapsed + suspendedMs',
    'return sources.wallMs()',
  ]),
  one('wall-clock-operator', 'the operator lives by the wall clock', 'src/operator/clock.ts', [
    'clock.monotonicSeconds() * 1000',
    'Number(clock.wallMicroseconds()) / 1000',
  ]),
  one('death-without-id', 'a death needs no containerID', 'src/core/death.ts', [
    "(end.containerID ?? '') !== '' &&",
    '',
  ]),
  one('death-unknown', 'a made-up ContainerStatusUnknown counts as a death', 'src/core/death.ts', [
    "end.reason !== 'ContainerStatusUnknown'",
    'true',
  ]),
  one('death-by-phase', 'a phase that anybody wrote counts as a death', 'src/core/death.ts', [
    'if (status === undefined) return false;',
    "if (status === undefined) return false; if (status.phase === 'Failed') return true;",
  ]),
  one(
    'policy-off',
    'the Lease policy looks at the operator only, and somebody else writes',
    'test/simulation/api/policies.ts',
    [
      "if (request.operation !== 'DELETE') leasePolicy(request);",
      "if (request.operation !== 'DELETE' && isOperator(request.who)) leasePolicy(request);",
    ],
  ),
  one(
    'policy-gone',
    'the Lease policy is not there at all, and the operator does not notice',
    'test/simulation/api/policies.ts',
    [
      "if (request.operation !== 'DELETE') leasePolicy(request);",
      "if (request.operation !== 'DELETE' && request.object?.metadata.name === 'kilit.canary') leasePolicy(request);",
    ],
  ),
  one('grant-after-recreation', 'a Lease made anew is granted at once', 'src/core/tenure.ts', [
    "return now >= until ? { kind: 'free' } : { kind: 'previous', until }",
    "return { kind: 'free' }",
  ]),
  {
    name: 'queue-in-memory',
    about: 'the order of the queue is not read from the Pods',
    edits: [
      {
        file: 'src/core/queue.ts',
        find: 'if (a.queuedAt !== undefined && b.queuedAt !== undefined) {',
        replace: 'if (a === undefined) {',
      },
      {
        file: 'src/core/queue.ts',
        find: 'if (a.queuedAt !== undefined || b.queuedAt !== undefined) return',
        replace: 'if (a === undefined) return',
      },
    ],
  },
  {
    name: 'loser-keeps-place',
    about: 'a Pod that lost the lock keeps its place in the queue',
    edits: [
      {
        file: 'src/operator/writer.ts',
        find: "leader: 'true', queuedAt: null",
        replace: "leader: 'true', queuedAt: undefined",
      },
      { file: 'src/core/marks.ts', find: '&& pod.leader && pod.queuedAt === undefined', replace: '&& pod.leader' },
      { file: 'src/core/marks.ts', find: 'queuedAt: place++', replace: 'queuedAt: pod.queuedAt ?? place++' },
    ],
  },
  one('no-reset', 'kilit-reset leaves the files of a former grant', 'src/sidecar/reset.ts', [
    'files.removeGrant();',
    '',
  ]),
  one('exit-0-on-sigterm', 'the sidecar ends with 0 on SIGTERM', 'test/simulation/world/sidecar.ts', [
    'return code;',
    "return _explanation.startsWith('Terminated') ? 0 : code;",
  ]),
  one('exit-0-on-loss', 'the sidecar ends with 0', 'test/simulation/world/sidecar.ts', ['return code;', 'return 0;']),
  one('no-grace', 'a terminating holder is not given its grace period', 'src/core/lease.ts', [
    'const grace = ending ?',
    'const grace = ending && terms === undefined ?',
  ]),
  one('reads-extend', 'reading the own Lease extends the deadline', 'src/core/holder-observe.ts', [
    "return state.kind === 'holding' || state.kind === 'unrenewed' ? resume(state, moment) : stay(state)",
    "return state.kind === 'holding' || state.kind === 'unrenewed' ? resume({ ...state, renewedAt: moment.now, deadline: moment.now + 0.9 * state.grant.leaseDurationMs }, moment) : stay(state)",
  ]),
  one('no-takeover-delay', 'a grant after an expiry does not wait for the kubelet', 'src/core/lease.ts', [
    'terms.leaseDurationSeconds + terms.takeoverDelaySeconds + Math',
    'terms.leaseDurationSeconds + Math',
  ]),
  one('alone-continues', 'a sidecar that was restarted without its Pod goes on', 'src/core/holder.ts', [
    "if (event.epoch === 'absent') return",
    "if (event.epoch !== 'absent' && event.epoch !== 'fresh') return",
  ]),
  one('no-holder-check', "the holder's Pod is not read before its lease expires", 'src/operator/holder-check.ts', [
    'return async (action) => {',
    'return async (action) => { if (action !== undefined) return;',
  ]),
  one('no-skew', 'a holder stops only when its lease is over by its own clock', 'src/core/holder-timing.ts', [
    'const STOP_AFTER = 0.9;',
    'const STOP_AFTER = 1;',
  ]),
  one('same-renew-time', 'a renewal may write the time that is there already', 'src/core/micro-time.ts', [
    'while (taken.includes(formatMicroTime(micros)))',
    'while (taken.length > 9)',
  ]),
  one('status-of-the-past', 'status goes on naming a holder that is gone', 'src/core/status.ts', [
    "const keepsHolder = tenure === undefined || tenure.kind === 'previous';",
    'const keepsHolder = held === undefined;',
  ]),
  one('break-frees-at-once', 'a broken holder counts as stopped', 'src/core/tenure.ts', [
    'return pod?.confirmedDead || now >= until',
    'return pod?.confirmedDead || until > 0',
  ]),
  one('break-unrecorded', 'a grant is broken before the status tells who did it', 'src/core/break.ts', [
    "standing.kind !== 'open' || !standing.recorded",
    "standing.kind !== 'open'",
  ]),
  one('all-continue', 'no holder stops at its deadline, whatever its terms', 'src/core/holder-unrenewed.ts', [
    "grant.onRenewalFailure === 'ContinueFenced'",
    'grant.onRenewalFailure !== undefined',
  ]),
  one('yield-unheard', 'the sidecar does not look whether it is asked to yield', 'src/core/holder-lease.ts', [
    "const yieldAsked = typeof asked === 'string' ? asked : undefined;",
    "const yieldAsked = typeof asked === 'number' ? String(asked) : undefined;",
  ]),
];
