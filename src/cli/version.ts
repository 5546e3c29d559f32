import manifest from '../../package.json' with { type: 'json' };

/** The version of this package; the bundle carries it inside, since the image has no `package.json`. */
export const { version } = manifest;
