/** The one call to containerd's CRI that its own client cannot make, as gRPC over HTTP/2 by hand. */
import { connect } from 'node:http2';
import { createConnection } from 'node:net';

const TIMEOUT_MILLISECONDS = 30_000;

/** Protobuf message with one string field, number 1; then the five bytes that gRPC puts before a message. */
export function encodeStringMessage(text: string): Buffer {
  const bytes = Buffer.from(text);
  if (bytes.length > 127) throw new Error(`'${text}' is too long for a one-byte length`);
  const message = Buffer.concat([Buffer.from([0x0a, bytes.length]), bytes]);
  const prefix = Buffer.alloc(5);
  prefix.writeUInt32BE(message.length, 1);
  return Buffer.concat([prefix, message]);
}

/** Stops the container if it runs and forgets it, as the kubelet's garbage collection does. */
export function removeContainer(socketPath: string, containerId: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const session = connect('http://containerd', { createConnection: () => createConnection(socketPath) });
    const finish = (error?: Error): void => {
      session.destroy();
      if (error === undefined) resolve();
      else reject(error);
    };
    session.on('error', finish);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/runtime.v1.RuntimeService/RemoveContainer',
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    stream.setTimeout(TIMEOUT_MILLISECONDS, () => finish(new Error(`containerd did not answer at ${socketPath}`)));
    stream.on('error', finish);
    const conclude = (headers: Readonly<Record<string, unknown>>): void => {
      const status = headers['grpc-status'];
      if (status === undefined) return;
      finish(
        status === '0' ? undefined : new Error(`RemoveContainer ${containerId}: ${String(headers['grpc-message'])}`),
      );
    };
    stream.on('response', conclude);
    stream.on('trailers', conclude);
    stream.resume();
    stream.end(encodeStringMessage(containerId));
  });
}
