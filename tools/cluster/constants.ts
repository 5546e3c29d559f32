/** Versions and bounds of the test clusters, each in this one place. */

/** Default Kubernetes version; `--kubernetes-version` takes any other that is published as a Go module. */
export const KUBERNETES_VERSION = '1.36.3';
export const ETCD_VERSION = '3.7.3';
export const HELM_VERSION = '4.3.1';

export const DEFAULT_CLUSTER = 'dev';
export const MAX_NODES = 4;
/** Clusters side by side on one machine; each takes an index that decides its ports and networks. */
export const MAX_CLUSTERS = 16;
/** Keeps Unix socket paths below the kernel's 107 bytes and interface names readable. */
export const MAX_NAME_LENGTH = 20;

/** The image of operator, sidecar and CLI. */
export const KILIT_IMAGE = 'localhost/kilit:dev';
/** The same with a wall clock that the fault harness can set. */
export const CLOCK_IMAGE = 'localhost/kilit-clock:dev';
/** Node and busybox with a shell, for test programs. */
export const TEST_IMAGE = 'localhost/kilit-test:dev';
/** Programs and database of `examples/paused-holder`. */
export const EXAMPLE_IMAGE = 'localhost/kilit-example:dev';
export const PAUSE_IMAGE = 'localhost/kilit-pause:1';
