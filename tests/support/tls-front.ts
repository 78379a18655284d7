import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { promisify } from 'node:util';

export interface TlsFront {
  /** `https://ADDRESS`, on the usual port: some clients know no other. */
  url: string;
  /** For NODE_EXTRA_CA_CERTS. */
  certificateFile: string;
  close(): Promise<void>;
}

/** TLS on port 443 of a loopback address of its own, before a server that speaks plain HTTP; what a deployment has a proxy for. */
export async function openTlsFront(address: string, target: string): Promise<TlsFront> {
  const dir = await mkdtemp(join(tmpdir(), 'tls-front-'));
  const [key, certificateFile] = [join(dir, 'key.pem'), join(dir, 'cert.pem')];
  const named = ['-subj', `/CN=${address}`, '-addext', `subjectAltName=IP:${address}`];
  const made = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-keyout', key, '-out', certificateFile];
  await promisify(execFile)('openssl', [...made, ...named]);
  const { hostname, port } = new URL(target);
  const server = createServer({ key: await readFile(key), cert: await readFile(certificateFile) }, (client) => {
    const upstream = connect(Number(port), hostname);
    client.on('error', () => upstream.destroy()).pipe(upstream);
    upstream.on('error', () => client.destroy()).pipe(client);
  });
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(443, address, resolve));
  return {
    url: `https://${address}`,
    certificateFile,
    close: async () => {
      server.close();
      await rm(dir, { recursive: true });
    },
  };
}
