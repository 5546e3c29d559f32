import type { Failpoint } from './failpoint.ts';
import { POD_FAILPOINTS } from './pods.ts';

export const FAILPOINTS: readonly Failpoint[] = [...POD_FAILPOINTS];
