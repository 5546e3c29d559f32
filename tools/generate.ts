import { readFileSync, writeFileSync } from 'node:fs';
import { parse } from 'yaml';
import { generateTypes } from './generate/types.ts';

const crd = parse(readFileSync('charts/kilit/files/crd.yaml', 'utf8'));
writeFileSync('src/api/generated/distributedlock.ts', generateTypes(crd.spec.versions[0].schema.openAPIV3Schema));
