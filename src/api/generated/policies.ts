// Generated from charts/kilit by `npm run generate`. Do not edit.

/** Mutating policies that the chart installs by default. */
export const MUTATING_POLICIES: readonly string[] = [
  'kilit-cronjob-label',
  'kilit-inject',
  'kilit-job-label',
];

/** Validating policies that the chart installs by default, and what their binding must do. */
export const VALIDATING_POLICIES: Readonly<Record<string, string>> = {
  'kilit-gated-rollout': 'Warn',
  'kilit-job-conflict': 'Deny',
  'kilit-leader': 'Deny',
  'kilit-lease': 'Deny',
  'kilit-lease-name': 'Deny',
  'kilit-lock': 'Deny',
  'kilit-lock-request': 'Deny',
  'kilit-misplaced-label': 'Warn',
  'kilit-pod': 'Deny',
  'kilit-pod-gate': 'Deny',
  'kilit-token-base': 'Deny',
};
