import { createSign, generateKeyPairSync, type KeyObject, randomBytes } from 'node:crypto';

/** A self-signed certificate for 127.0.0.1 that is its own CA, made without openssl. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export function makeCertificate(): Certificate {
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const algorithm = sequence(objectId('1.2.840.10045.4.3.2')); // ecdsa-with-SHA256
  const name = sequence(
    der(0x31, sequence(objectId('2.5.4.3'), der(0x0c, Buffer.from(`kilit ${randomBytes(4).toString('hex')}`)))),
  );
  const now = Date.now();
  const body = sequence(
    der(0xa0, der(0x02, Buffer.from([2]))), // version 3
    der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)])),
    algorithm,
    name,
    sequence(utcTime(now - 3_600_000), utcTime(now + 86_400_000)),
    name,
    publicKey.export({ type: 'spki', format: 'der' }),
    der(
      0xa3,
      sequence(extension('2.5.29.19', sequence(der(0x01, Buffer.from([0xff])))), extension('2.5.29.17', addresses())),
    ),
  );
  const certificate = sequence(body, algorithm, der(0x03, Buffer.concat([Buffer.from([0]), sign(body, privateKey)])));
  return { cert: pem('CERTIFICATE', certificate), key: String(privateKey.export({ type: 'pkcs8', format: 'pem' })) };
}

/** subjectAltName: IP 127.0.0.1. */
const addresses = () => sequence(der(0x87, Buffer.from([127, 0, 0, 1])));

const sign = (body: Buffer, key: KeyObject) => createSign('SHA256').update(body).sign(key);

function der(tag: number, ...contents: readonly Buffer[]): Buffer {
  const content = Buffer.concat(contents);
  const { length } = content;
  const size = length < 128 ? [length] : length < 256 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

const sequence = (...contents: readonly Buffer[]) => der(0x30, ...contents);
const extension = (id: string, value: Buffer) => sequence(objectId(id), der(0x04, value));
const utcTime = (ms: number) =>
  der(
    0x17,
    Buffer.from(
      new Date(ms)
        .toISOString()
        .replace(/[-:T]|\.\d+/g, '')
        .slice(2),
    ),
  );

function objectId(text: string): Buffer {
  const [first = 0, second = 0, ...others] = text.split('.').map(Number);
  const bytes = others.flatMap((value) => {
    const digits = [value & 0x7f];
    for (let rest = value >> 7; rest > 0; rest >>= 7) digits.unshift((rest & 0x7f) | 0x80);
    return digits;
  });
  return der(0x06, Buffer.from([first * 40 + second, ...bytes]));
}

function pem(label: string, body: Buffer): string {
  const lines = body.toString('base64').match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join('\n')}\n-----END ${label}-----\n`;
}
