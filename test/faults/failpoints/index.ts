import { CLOCK_FAILPOINTS } from './clocks.ts';
import { CONTROL_PLANE_FAILPOINTS } from './control-plane.ts';
import type { Failpoint } from './failpoint.ts';
import { NODE_FAILPOINTS } from './nodes.ts';
import { OPERATOR_FAILPOINTS } from './operator.ts';
import { POD_FAILPOINTS } from './pods.ts';

export const FAILPOINTS: readonly Failpoint[] = [
  ...POD_FAILPOINTS,
  ...OPERATOR_FAILPOINTS,
  ...NODE_FAILPOINTS,
  ...CONTROL_PLANE_FAILPOINTS,
  ...CLOCK_FAILPOINTS,
];
