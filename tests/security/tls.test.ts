import { execFile } from 'node:child_process';
import { constants, createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises';
import { connect as connectHttp2 } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import { connect as dial } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type ConnectionOptions,
  checkServerIdentity,
  connect,
  createServer,
  type PeerCertificate,
  type TLSSocket,
} from 'node:tls';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

const run = promisify(execFile);
const MAX_CONNECTIONS = 64;

let platform: TestPlatform;
let port: number;
let host: string;
let ca: string;

beforeAll(async () => {
  platform = await startTestPlatform({
    args: ['--sandbox', 'process', '--tls', '--tls-port', '0', '--max-connections', String(MAX_CONNECTIONS)],
  });
  const { tls } = platform.ready;
  if (!tls) throw new Error('no TLS');
  port = tls.port;
  host = tls.hosts[0] ?? '';
  ca = await readFile(tls.caFile, 'utf8');
});
afterAll(() => platform?.dispose());

/** What a client that believes the CA gets, or the code of why it does not. */
async function asked(options: ConnectionOptions, path = '/healthz'): Promise<string> {
  const socket = connect({ host: '127.0.0.1', port, ca, servername: host, ...options });
  try {
    await once(socket, 'secureConnect');
    return await answered(socket, path);
  } catch (error) {
    return error instanceof Error && 'code' in error ? String(error.code) : String(error);
  } finally {
    socket.destroy();
  }
}

/** The beginning of an answer; what there is of it when the connection ends. */
async function answered(socket: TLSSocket, path = '/healthz', connection = 'close'): Promise<string> {
  socket.write(`GET ${path} HTTP/1.1\r\nhost: ${host}\r\nconnection: ${connection}\r\n\r\n`);
  return new Promise((resolve) => {
    socket.once('data', (part) => resolve(part.toString('latin1', 0, 12)));
    socket.once('close', () => resolve(''));
  });
}

async function alive(): Promise<boolean> {
  return (await fetch(`${platform.ready.endpoint}/healthz`)).ok && (await asked({})).startsWith('HTTP/1.1 ');
}

describe('the listener of the vendor’s names', () => {
  it('speaks no version and no cipher that is broken', async () => {
    for (const version of ['TLSv1.2', 'TLSv1.3'] as const)
      expect(await asked({ minVersion: version, maxVersion: version }), version).toMatch(/^HTTP\/1.1 /);
    const weak = { ciphers: 'ALL:@SECLEVEL=0', secureOptions: constants.SSL_OP_LEGACY_SERVER_CONNECT };
    for (const version of ['TLSv1', 'TLSv1.1'] as const)
      expect(await asked({ ...weak, minVersion: version, maxVersion: version }), version).toMatch(/^E/);
    for (const ciphers of ['NULL', 'aNULL', 'CAMELLIA', 'AES128-SHA', 'PSK'])
      expect(await asked({ ciphers: `${ciphers}:@SECLEVEL=0`, maxVersion: 'TLSv1.2' }), ciphers).not.toMatch(/^HTTP/);
  });

  it('is the same whatever name is asked for, and no client believes it under another', async () => {
    for (const servername of [
      'sts.us-east-1.amazonaws.com',
      'example.com',
      '*.amazonaws.com',
      'x'.repeat(250),
      `${host}.evil.test`,
    ]) {
      expect(await asked({ servername }), servername).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
      // The control: unasked it is taken, and nothing else is behind that name.
      expect(await asked({ servername, checkServerIdentity: () => undefined }), servername).toMatch(/^HTTP\/1.1 /);
    }
  });

  it('shows none of its keys in its certificates, and no key to others of this machine', async () => {
    const directory = join(platform.dataDir, 'tls');
    expect((await stat(directory)).mode & 0o077).toBe(0);
    for (const name of await readdir(directory)) {
      const file = join(directory, name);
      if ((await readFile(file, 'utf8')).includes('PRIVATE KEY')) expect((await stat(file)).mode & 0o077, name).toBe(0);
    }
    const nobody = ['--reuid=65534', '--regid=65534', '--clear-groups', 'cat', join(directory, 'ca-key.pem')];
    if (process.getuid?.() === 0) await expect(run('setpriv', nobody)).rejects.toThrow(/denied/);
  });

  it('is not held up by who begins a handshake and waits, and has no more of them than the other port', async () => {
    // A client hello, cut off in its middle.
    const half = Buffer.from('160301020001000001fc0303', 'hex');
    const held: Socket[] = [];
    for (let i = 0; i < MAX_CONNECTIONS / 2; i += 1) {
      const socket = dial(port, '127.0.0.1').on('error', () => undefined);
      await once(socket, 'connect');
      socket.write(i % 2 ? half : '');
      held.push(socket);
    }
    expect(await alive()).toBe(true);
    // More than may be are closed as they come, here as on the other port.
    const more = Array.from({ length: MAX_CONNECTIONS }, () => dial(port, '127.0.0.1').on('error', () => undefined));
    await Promise.any(more.map((socket) => once(socket, 'close')));
    for (const socket of more) socket.destroy();
    expect((await fetch(`${platform.ready.endpoint}/healthz`)).ok).toBe(true);
    for (const socket of held) socket.destroy();
    expect(await alive()).toBe(true);
  });

  it('goes on whatever comes instead of a handshake, or in its middle', async () => {
    const hello = Buffer.from('16030100', 'hex');
    const rubbish = [
      Buffer.from('GET / HTTP/1.1\r\n\r\n'),
      Buffer.alloc(100_000, 0x16),
      Buffer.from('1603010000', 'hex'),
      Buffer.from('16030affff', 'hex'),
      Buffer.concat([hello, Buffer.alloc(400, 0xff)]),
      Buffer.from('150301000202 28'.replace(' ', ''), 'hex'),
      Buffer.from('1403030001 01'.replace(' ', ''), 'hex'),
      Buffer.from('80460103010030000000100000', 'hex'),
    ];
    for (const bytes of rubbish)
      for (const end of ['resetAndDestroy', 'destroy', 'end'] as const) {
        const socket = dial(port, '127.0.0.1').on('error', () => undefined);
        await once(socket, 'connect');
        const closed = new Promise((resolve) => socket.once('close', resolve));
        socket.resume().write(bytes);
        socket[end]();
        await closed;
      }
    const begun = 'POST /runtimes/x/invocations HTTP/1.1\r\nhost: a\r\nauthorization: Bearer x\r\ncontent-';
    for (const part of [begun, `${begun}length: 70000\r\n\r\nx`])
      for (const end of ['resetAndDestroy', 'destroy'] as const) {
        const line = dial(port, '127.0.0.1').on('error', () => undefined);
        const socket = connect({ socket: line, ca, servername: host });
        socket.on('error', () => undefined);
        await once(socket, 'secureConnect');
        await new Promise((resolve) => socket.write(part, resolve));
        line[end]();
      }
    expect(await alive()).toBe(true);
  });

  it('makes no new keys for who asks again and again on one connection', async () => {
    const socket = connect({ host: '127.0.0.1', port, ca, servername: host, maxVersion: 'TLSv1.2' });
    await once(socket, 'secureConnect');
    socket.on('error', () => undefined);
    let times = 0;
    for (let i = 0; i < 20 && !socket.destroyed; i += 1) {
      socket.renegotiate({}, (error) => {
        if (!error) times += 1;
      });
      // Whatever became of it, the server has read it when this is answered, or the connection has ended.
      await answered(socket, '/healthz', 'keep-alive');
    }
    expect(times).toBeLessThan(10);
    socket.destroy();
    expect(await alive()).toBe(true);
  });
});

describe('HTTP/2 over TLS', () => {
  it('is spoken to who offers it, and HTTP/1.1 to all others, on one port', async () => {
    const session = connectHttp2(`https://${host}:${port}`, { ca, host: '127.0.0.1', servername: host });
    try {
      const stream = session.request({ ':path': '/healthz' });
      const [headers] = await once(stream, 'response');
      expect(headers[':status']).toBe(200);
      expect(session.alpnProtocol).toBe('h2');
      stream.resume();
    } finally {
      session.destroy();
    }
    expect(await asked({})).toBe('HTTP/1.1 200');
    expect(await asked({ ALPNProtocols: ['http/1.1'] })).toBe('HTTP/1.1 200');
    expect(await asked({ ALPNProtocols: ['spdy/3'] })).not.toContain('200');
  });
});

describe('the authority', () => {
  let dir: string;
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'tls-forged-'));
  });
  afterAll(() => rm(dir, { recursive: true, force: true }));

  /** What a client says to a server with a certificate that OpenSSL makes with the stolen key. */
  async function forged(subject: string, extensions: string[], name: string, days = 30): Promise<string> {
    const directory = join(platform.dataDir, 'tls');
    const [key, request, certificate, text] = ['key', 'request', 'certificate', 'text'].map((file) => join(dir, file));
    await run('openssl', [
      'req',
      '-new',
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:P-256',
      '-nodes',
      '-keyout',
      `${key}`,
      '-out',
      `${request}`,
      '-subj',
      subject,
    ]);
    await run('sh', ['-c', `printf '%s\\n' "$@" > ${text}`, 'sh', 'extendedKeyUsage=serverAuth', ...extensions]);
    const chain = ['-CA', platform.ready.tls?.caFile ?? '', '-CAkey', join(directory, 'ca-key.pem'), '-CAcreateserial'];
    await run('openssl', [
      'x509',
      '-req',
      '-in',
      `${request}`,
      '-days',
      `${days}`,
      '-extfile',
      `${text}`,
      '-out',
      `${certificate}`,
      ...chain,
    ]);
    const server = createServer({ key: await readFile(`${key}`), cert: await readFile(`${certificate}`) });
    server.on('tlsClientError', () => undefined).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port, ca, servername: name });
    try {
      await once(socket, 'secureConnect');
      return 'believed';
    } catch (error) {
      return error instanceof Error && 'code' in error ? String(error.code) : String(error);
    } finally {
      socket.destroy();
      server.close();
    }
  }

  it('vouches for nobody else, in whatever form a name is written, even in the wrong hands', async () => {
    // The control: its key is the right one.
    expect(await forged('/CN=a', [`subjectAltName=DNS:${host}`], host)).toBe('believed');
    const tries: [subject: string, extensions: string[], name: string][] = [
      ['/CN=a', ['subjectAltName=DNS:sts.us-east-1.amazonaws.com'], 'sts.us-east-1.amazonaws.com'],
      ['/CN=a', ['subjectAltName=DNS:*.us-east-1.amazonaws.com'], 'sts.us-east-1.amazonaws.com'],
      ['/CN=a', ['subjectAltName=DNS:*.com'], 'example.com'],
      ['/CN=a', ['subjectAltName=DNS:EXAMPLE.com'], 'example.com'],
      ['/CN=a', ['subjectAltName=DNS:example.com.'], 'example.com'],
      ['/CN=a', ['subjectAltName=DNS:evil-localhost'], 'evil-localhost'],
      ['/CN=a', ['subjectAltName=IP:10.0.0.1'], '10.0.0.1'],
      ['/CN=a', ['subjectAltName=IP:2001:db8::1'], '2001:db8::1'],
      ['/CN=a', [`subjectAltName=DNS:${host},DNS:example.com`], 'example.com'],
      // No alternative name at all: some clients then take the common one.
      ['/CN=example.com', [], 'example.com'],
      ['/CN=example.com', ['subjectAltName=email:a@b.test'], 'example.com'],
    ];
    for (const [subject, extensions, name] of tries)
      expect(await forged(subject, extensions, name), `${subject} ${extensions}`).not.toBe('believed');
    // Nor another authority, which could.
    const below = [
      'basicConstraints=critical,CA:TRUE',
      'keyUsage=critical,keyCertSign',
      'subjectAltName=DNS:localhost',
    ];
    expect(await forged('/CN=below', below, 'example.com')).not.toBe('believed');
    const parsed = new X509Certificate(ca);
    expect(parsed.ca).toBe(true);
    expect(
      createPrivateKey(await readFile(join(platform.dataDir, 'tls/ca-key.pem'))).asymmetricKeyDetails?.namedCurve,
    ).toBe('prime256v1');
  });

  it('gives certificates that end, and a client tells', async () => {
    expect(await forged('/CN=a', [`subjectAltName=DNS:${host}`], host, -1)).not.toBe('believed');
    const socket = connect({ host: '127.0.0.1', port, ca, servername: host });
    await once(socket, 'secureConnect');
    const certificate: PeerCertificate = socket.getPeerCertificate();
    socket.destroy();
    const days = (Date.parse(certificate.valid_to) - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(300);
    expect(days).toBeLessThan(398);
    expect(checkServerIdentity('example.com', certificate)).toBeInstanceOf(Error);
  });
});
