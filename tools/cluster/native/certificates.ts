import { existsSync } from 'node:fs';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { run } from '../exec.ts';
import { kubeconfig } from './config.ts';
import type { Layout, NodeLayout } from './layout.ts';

const DAYS = '3650';
const EC_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes'];

interface CertificateRequest {
  readonly file: string;
  readonly commonName: string;
  readonly organization?: string;
  readonly names?: readonly string[];
}

const openssl = (cluster: Layout, args: readonly string[]): Promise<unknown> =>
  run('openssl', args, { cwd: cluster.pki });

/** Makes what is missing. A certificate takes its name as the last action, so that a killed run leaves none half. */
export async function ensureClusterCertificates(cluster: Layout): Promise<void> {
  await mkdir(cluster.pki, { recursive: true, mode: 0o700 });
  if (!existsSync(join(cluster.pki, 'ca.crt'))) {
    const ca = ['req', '-x509', ...EC_KEY, '-days', DAYS, '-subj', `/CN=kilit-${cluster.name}`];
    await openssl(cluster, [...ca, '-keyout', 'ca.key', '-out', 'ca.crt.new']);
    await rename(join(cluster.pki, 'ca.crt.new'), join(cluster.pki, 'ca.crt'));
  }
  if (!existsSync(join(cluster.pki, 'sa.pub'))) {
    await openssl(cluster, ['genrsa', '-out', 'sa.key', '2048']);
    await openssl(cluster, ['rsa', '-in', 'sa.key', '-pubout', '-out', 'sa.pub']);
  }
  await Promise.all([
    ensureCertificate(cluster, { file: 'apiserver', commonName: 'kube-apiserver', names: apiServerNames(cluster) }),
    ensureClient(cluster, { file: 'admin', commonName: 'kilit-admin', organization: 'system:masters' }),
    ...['kube-controller-manager', 'kube-scheduler', 'kube-proxy'].map((name) =>
      ensureClient(cluster, { file: name, commonName: `system:${name}` }),
    ),
  ]);
}

/** One certificate for both the kubelet's server and its requests, as node. */
export async function ensureNodeCertificate(cluster: Layout, node: NodeLayout): Promise<void> {
  const user = { commonName: `system:node:${node.name}`, organization: 'system:nodes' };
  await ensureCertificate(cluster, { file: node.name, ...user, names: [`DNS:${node.name}`, `IP:${node.address}`] });
  await writeKubeconfig(cluster, node.name, join(node.dir, 'kubelet.kubeconfig'));
}

function apiServerNames(cluster: Layout): readonly string[] {
  const dns = ['localhost', 'kubernetes', 'kubernetes.default', 'kubernetes.default.svc'].map((name) => `DNS:${name}`);
  return [...dns, 'IP:127.0.0.1', `IP:${cluster.apiServiceAddress}`, `IP:${cluster.bridgeAddress}`];
}

async function ensureClient(cluster: Layout, request: CertificateRequest): Promise<void> {
  await ensureCertificate(cluster, request);
  await writeKubeconfig(cluster, request.file, join(cluster.dir, `${request.file}.kubeconfig`));
}

async function ensureCertificate(cluster: Layout, request: CertificateRequest): Promise<void> {
  const { file, commonName, organization, names = [] } = request;
  const crt = join(cluster.pki, `${file}.crt`);
  if (existsSync(crt)) return;
  const usage = 'extendedKeyUsage=serverAuth,clientAuth\n';
  const alternatives = names.length === 0 ? '' : `subjectAltName=${names.join(',')}\n`;
  await writeFile(join(cluster.pki, `${file}.ext`), usage + alternatives);
  const subject = `${organization === undefined ? '' : `/O=${organization}`}/CN=${commonName}`;
  await openssl(cluster, ['req', ...EC_KEY, '-subj', subject, '-keyout', `${file}.key`, '-out', `${file}.csr`]);
  const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-set_serial', `0x${serial(file)}`, '-days', DAYS];
  await openssl(cluster, [
    'x509',
    '-req',
    '-in',
    `${file}.csr`,
    ...signer,
    '-extfile',
    `${file}.ext`,
    '-out',
    `${crt}.new`,
  ]);
  await rename(`${crt}.new`, crt);
}

/** One serial number per file: openssl's own counter file is not safe for parallel use. */
const serial = (file: string): string => Buffer.from(file.slice(0, 18)).toString('hex');

async function writeKubeconfig(cluster: Layout, file: string, path: string): Promise<void> {
  const read = (name: string): Promise<Buffer> => readFile(join(cluster.pki, name));
  const [ca, certificate, key] = await Promise.all([read('ca.crt'), read(`${file}.crt`), read(`${file}.key`)]);
  const server = `https://${cluster.bridgeAddress}:${cluster.apiServerPort}`;
  await writeFile(path, kubeconfig({ cluster: cluster.name, server, ca, certificate, key }), { mode: 0o600 });
}
