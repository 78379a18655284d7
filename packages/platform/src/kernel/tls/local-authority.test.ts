import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { getCACertificates } from 'node:tls';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issue, makeAuthority, subject } from './certificate.ts';
import { integer, oid, time } from './der.ts';
import { openLocalAuthority } from './local-authority.ts';

const HOST = 'bedrock-agentcore.us-east-1.amazonaws.com';
const now = Date.now();
let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'local-authority-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

/** What a client that trusts `ca` says to a server with that certificate, called by `name`. */
async function talk(credential: { certificate: string; key: string }, ca: string, name: string): Promise<string> {
  const server = createServer({ cert: credential.certificate, key: credential.key }, (_, response) =>
    response.end('ok'),
  );
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  try {
    const servername = /^[\d.]+$/.test(name) ? {} : { servername: name };
    const call = request({ host: '127.0.0.1', port, ca, agent: false, headers: { host: name }, ...servername });
    call.end();
    const [response] = await once(call, 'response').catch((error: NodeJS.ErrnoException) => [error]);
    if (response instanceof Error)
      return 'code' in response && response.code !== 'UNSPECIFIED' ? String(response.code) : response.message;
    response.resume();
    return String(response.statusCode);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

describe('the local authority', () => {
  it('is believed by who trusts its file, for its names alone, and by nobody else', async () => {
    const authority = await openLocalAuthority(join(root, 'a'), [HOST], now);
    const ca = await readFile(authority.caFile, 'utf8');
    const server = authority.issue(now);
    expect(await talk(server, ca, HOST)).toBe('200');
    expect(await talk(server, ca, 'localhost')).toBe('200');
    expect(await talk(server, ca, '127.0.0.1')).toBe('200');
    expect(await talk(server, await readFile(authority.bundleFile, 'utf8'), HOST)).toBe('200');
    expect(await talk(server, ca, 'sts.us-east-1.amazonaws.com')).toBe('ERR_TLS_CERT_ALTNAME_INVALID');
    const other = await openLocalAuthority(join(root, 'b'), [HOST], now);
    expect(await talk(server, await readFile(other.caFile, 'utf8'), HOST)).toMatch(/UNABLE_TO|SELF_SIGNED|SIGNATURE/);
  });

  it('leaves in its bundle what clients trusted before, the roots of this machine too', async () => {
    const proxy = makeAuthority(['proxy.example'], now);
    const name = subject(/CN=(.*)/.exec(new X509Certificate(proxy.certificate).subject)?.[1] ?? '');
    const behind = issue({ key: createPrivateKey(proxy.key), name }, ['proxy.example'], now);
    const talked = async (dir: string, roots?: () => string[]): Promise<string> => {
      const { bundleFile } = await openLocalAuthority(join(root, dir), [HOST], now, roots);
      return talk(behind, await readFile(bundleFile, 'utf8'), 'proxy.example');
    };
    expect(await talked('with', () => [proxy.certificate])).toBe('200');
    expect(await talked('without')).toMatch(/UNABLE_TO|SELF_SIGNED/);
    const bundle = await readFile(join(root, 'without/bundle.pem'), 'utf8');
    for (const kind of ['bundled', 'system'] as const)
      for (const one of getCACertificates(kind)) expect(bundle).toContain(one.trim());
  });

  it('cannot vouch for another name, even with its key in the wrong hands', async () => {
    const dir = join(root, 'stolen');
    const { caFile } = await openLocalAuthority(dir, [HOST], now);
    const ca = new X509Certificate(await readFile(caFile));
    const key = createPrivateKey(await readFile(join(dir, 'ca-key.pem')));
    const forge = (names: string[]) => issue({ key, name: subject(ca.subject.split('CN=')[1] ?? '') }, names, now);
    // First the right name, so that it is the name that fails.
    expect(await talk(forge([HOST]), ca.toString(), HOST)).toBe('200');
    expect(await talk(forge(['example.com']), ca.toString(), 'example.com')).toBe('permitted subtree violation');
    expect(await talk(forge([HOST, 'sts.amazonaws.com']), ca.toString(), HOST)).toBe('permitted subtree violation');
    expect(await talk(forge(['10.0.0.1']), ca.toString(), 'localhost')).not.toBe('200');
  });

  it('is kept, its key for the owner alone; and made anew when it is for other names, damaged or at its end', async () => {
    const dir = join(root, 'kept');
    const read = async (hosts: string[], at = now): Promise<string> =>
      readFile((await openLocalAuthority(dir, hosts, at)).caFile, 'utf8');
    const first = await read([HOST]);
    expect(await read([HOST])).toBe(first);
    expect((await stat(join(dir, 'ca-key.pem'))).mode & 0o777).toBe(0o600);
    expect((await stat(dir)).mode & 0o777).toBe(0o700);
    const second = await read(['bedrock-agentcore.eu-central-1.amazonaws.com']);
    expect(second).not.toBe(first);
    const third = await read([HOST]);
    await writeFile(join(dir, 'ca-key.pem'), 'damaged');
    const fourth = await read([HOST]);
    expect(fourth).not.toBe(third);
    expect(await read([HOST], now + 3000 * 86_400_000)).toBe(fourth);
    expect(await read([HOST], now + 3300 * 86_400_000)).not.toBe(fourth);
  });
});

describe('DER', () => {
  it('has numbers, names and times as X.690 and RFC 5280 write them', () => {
    expect(oid('1.2.840.10045.4.3.2').toString('hex')).toBe('06082a8648ce3d040302');
    expect(integer(Buffer.from([0x80])).toString('hex')).toBe('02020080');
    expect(integer(Buffer.from([0, 0])).toString('hex')).toBe('020100');
    expect(time(new Date('2026-11-21T22:00:01.5Z')).subarray(2).toString()).toBe('261121220001Z');
    expect(time(new Date('2050-01-01T00:00:00Z')).subarray(2).toString()).toBe('20500101000000Z');
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 160n }), (value) => {
        const hex = value.toString(16);
        const bytes = integer(Buffer.from(hex.length % 2 ? `0${hex}` : hex, 'hex'));
        expect(BigInt(`0x${bytes.subarray(2).toString('hex')}`)).toBe(value);
        expect((bytes[2] ?? 0) & 0x80).toBe(0);
      }),
    );
  });
});
