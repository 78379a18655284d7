import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import Fastify from 'fastify';
import pino from 'pino';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { RegistryServer } from '../../../services/container-registry/server.ts';
import type { Credential } from '../../auth/index.ts';
import { systemClock } from '../../clock.ts';
import { served } from '../../http/testing/serve-routes.ts';
import { digestOf } from '../digest.ts';
import type { BaseProgress, ImagesRoom } from '../index.ts';
import { MEDIA } from '../media-types.ts';
import { openImages } from '../testing/images.ts';
import { tempDir } from '../testing/temp-dir.ts';
import { findPythons } from './python-interpreters.ts';

const run = promisify(execFile);
const isRoot = process.getuid?.() === 0;
if (!isRoot) console.warn('SKIPPED: base images are not run, which needs root for chroot');

/** Runs a command inside a root file system as the agent's user, in mount and network namespaces of its own where asked. */
async function inside(
  rootfs: string,
  env: string[],
  command: string[],
  options: { resolv?: string } = {},
): Promise<string> {
  const chroot = ['chroot', '--userspec=10001:10001', rootfs, '/usr/bin/env', '-i', ...env, ...command];
  const args =
    options.resolv === undefined
      ? chroot
      : [
          'unshare',
          '--mount',
          'sh',
          '-c',
          'mount --bind "$0" "$1/etc/resolv.conf" && shift && exec "$@"',
          options.resolv,
          rootfs,
          ...chroot,
        ];
  const [program = '', ...rest] = args;
  const { stdout } = await run(program, rest, { timeout: 30_000 });
  return stdout.trim();
}

let dir: string;
let images: ImagesRoom;
const told: BaseProgress[] = [];
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'images-bases-'));
  images = await openImages(dir, { progress: (event) => told.push(event) });
});
afterAll(async () => {
  await images.close();
  await rm(dir, { recursive: true, force: true });
});

async function prepared(base: string) {
  const { digest } = await images.resolve(`platform/base/${base}`);
  return images.prepare(digest);
}

async function somePython(): Promise<string | undefined> {
  const pythons = (await images.bases.available()).filter((name) => name.startsWith('python:'));
  return pythons.includes('python:3.11') ? 'python:3.11' : pythons[0];
}

const own = `node:${process.versions.node.split('.')[0]}`;

describe.skipIf(!isRoot)('a base of this machine’s Node', () => {
  it('runs with nothing else of the host, knows its user, its time zones and TLS', async () => {
    const { rootfs, config } = await prepared(own);
    expect(config.user).toBe('10001:10001');
    const script = `
      const os = require('os'), fs = require('fs'), tls = require('tls');
      console.log(JSON.stringify([process.version, os.userInfo().username, process.cwd(), tls.rootCertificates.length > 50,
        new Date(0).toLocaleTimeString('de-DE', { timeZone: 'Asia/Tokyo' }), fs.readdirSync('/etc').sort()]))`;
    const [version, user, cwd, certificates, time, etc] = JSON.parse(
      await inside(rootfs, config.env, ['node', '-e', script]),
    );
    expect([version, user, cwd, certificates, time]).toEqual([process.version, 'agent', '/', true, '09:00:00']);
    expect(etc).toEqual([
      'group',
      'hostname',
      'hosts',
      'localtime',
      'nsswitch.conf',
      'os-release',
      'passwd',
      'profile',
      'protocols',
      'resolv.conf',
      'services',
      'ssl',
    ]);
  });

  it('has a shell and the everyday tools', async () => {
    const { rootfs, config } = await prepared(own);
    const script = `cd /tmp && mkdir -p $$/x && echo "hello world" > $$/x/f && tar cz $$ | tar tz | grep -c f
      find $$ -name f -exec sed s/world/agent/ {} +; rm -r $$; awk "BEGIN { print 6 * 7 }"; id -un; bash -c 'echo $((2 ** 5))'`;
    expect((await inside(rootfs, config.env, ['sh', '-c', script])).split('\n')).toEqual([
      '1',
      'hello agent',
      '42',
      'agent',
      '32',
    ]);
  });

  it('holds nothing of the host’s users, names and settings, and lets the agent write only where it should', async () => {
    const { rootfs, config } = await prepared(own);
    expect(await readFile(join(rootfs, 'etc/hostname'), 'utf8')).toBe('agent\n');
    expect(await readFile(join(rootfs, 'etc/hosts'), 'utf8')).toBe('127.0.0.1\tlocalhost\n::1\tlocalhost\n');
    expect(await readFile(join(rootfs, 'etc/passwd'), 'utf8')).not.toMatch(/daemon|www-data/);
    expect((await readdir(join(rootfs, 'root'))).concat(await readdir(join(rootfs, 'home/agent')))).toEqual([]);
    const { stdout } = await run('find', [
      rootfs,
      '-xdev',
      '(',
      '-perm',
      '/6000',
      '-o',
      '-type',
      'b',
      '-o',
      '-type',
      'c',
      ')',
    ]);
    expect(stdout).toBe('');
    const writable = await inside(rootfs, config.env, [
      'sh',
      '-c',
      'for d in / /etc /usr/bin /root /tmp /var/tmp /home/agent /var/task; do test -w $d && echo $d; done',
    ]);
    expect(writable.split('\n')).toEqual(['/tmp', '/var/tmp', '/home/agent', '/var/task']);
    expect((await stat(join(dir, 'images'))).mode & 0o777).toBe(0o700);
  });
});

describe.skipIf(!isRoot)('name service', () => {
  it('asks the server that resolv.conf names, from Node, Python and getent', async () => {
    const server = createSocket('udp4', (query, from) => {
      const id = query.subarray(0, 2);
      const end = query.indexOf(0, 12) + 5;
      const isA = query.readUInt16BE(end - 4) === 1;
      const header = Buffer.from([0x81, 0x80, 0, 1, 0, isA ? 1 : 0, 0, 0, 0, 0]);
      const answer = isA ? Buffer.from([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 7]) : Buffer.alloc(0);
      server.send(Buffer.concat([id, header, query.subarray(12, end), answer]), from.port, from.address);
    });
    const address = `127.${1 + (process.pid % 250)}.${1 + (Date.now() % 250)}.53`;
    await new Promise<void>((resolve, reject) => server.once('error', reject).bind(53, address, resolve));
    try {
      const resolv = join(dir, 'resolv.conf');
      await writeFile(resolv, `nameserver ${address}\n`);
      const { rootfs, config } = await prepared(own);
      const ask = (command: string[], root = rootfs) => inside(root, config.env, command, { resolv });
      // Control: with the empty resolv.conf of the image nobody answers.
      await expect(inside(rootfs, config.env, ['getent', 'ahostsv4', 'agent.test'])).rejects.toThrow();
      expect(await ask(['getent', 'ahostsv4', 'agent.test'])).toContain('192.0.2.7');
      expect(await ask(['node', '-e', 'require("dns").lookup("agent.test", 4, (e, a) => console.log(e ?? a))'])).toBe(
        '192.0.2.7',
      );
      const python = await somePython();
      if (python)
        expect(
          await ask(
            ['python3', '-c', 'import socket; print(socket.gethostbyname("agent.test"))'],
            (await prepared(python)).rootfs,
          ),
        ).toBe('192.0.2.7');
    } finally {
      server.close();
    }
  });
});

describe.skipIf(!isRoot)('a base of this machine’s Python', () => {
  it('runs with its standard library and modules, finds certificates, and uses the compiled files it brought', async () => {
    const base = await somePython();
    if (base === undefined) return console.warn('SKIPPED: no Python on this machine (apt-get install python3)');
    const { rootfs, config } = await prepared(base);
    const script = `
import sys, json, ssl, sqlite3, ctypes, hashlib, lzma, bz2, zlib, asyncio, uuid, decimal, zoneinfo, http.server, getpass
json.dump({'version': 'python:%d.%d' % sys.version_info[:2], 'path': sys.path, 'certificates': len(ssl.create_default_context().get_ca_certs()) > 50,
  'zone': str(zoneinfo.ZoneInfo('Europe/Berlin')), 'user': getpass.getuser(), 'cached': http.server.__cached__}, sys.stdout)`;
    const seen = JSON.parse(await inside(rootfs, config.env, ['python3', '-c', script]));
    expect(seen).toMatchObject({ version: base, certificates: true, zone: 'Europe/Berlin', user: 'agent' });
    for (const path of seen.path) expect(path).toMatch(/^$|^\/usr\/lib\/python3/);
    const { stderr } = await run(
      'chroot',
      [rootfs, '/usr/bin/env', '-i', ...config.env, 'python3', '-v', '-c', 'import json.decoder'],
      { maxBuffer: 1e7 },
    );
    expect(stderr).toMatch(/code object from '\/usr\/lib\/python3[^']*\/json\/__pycache__\/decoder/);
    // Certificates are found by where OpenSSL looks, too, without the variable.
    const bare = await inside(
      rootfs,
      ['PATH=/usr/bin'],
      ['python3', '-c', 'import ssl; c = ssl.create_default_context(); print(len(c.get_ca_certs()) > 50)'],
    );
    expect(bare).toBe('True');
    // The host's own installed packages stay outside.
    const site = await readdir(join(rootfs, 'usr/lib/python3/dist-packages')).catch(() => []);
    expect(site.filter((name) => !/^pip/.test(name))).toEqual([]);
  });

  it('an interpreter that lies about its version or does not run is passed over', async () => {
    const bin = await tempDir();
    await writeFile(
      join(bin, 'python3.11'),
      '#!/bin/sh\necho \'{"version":"3.9","executable":"/x","stdlib":"/x","platstdlib":"/x","implementation":"cpython"}\'\n',
      { mode: 0o755 },
    );
    await writeFile(join(bin, 'python3.12'), '#!/bin/sh\nexit 1\n', { mode: 0o755 });
    await writeFile(join(bin, 'python3.13'), 'garbage', { mode: 0o755 });
    expect((await findPythons([bin], ['3.11', '3.12', '3.13'])).size).toBe(0);
  });
});

describe('bases through the registry', () => {
  it('are pulled by anyone who may log in, mounted under an image of his own, and never written', async () => {
    const app = Fastify({ forceCloseConnections: true });
    const registry = new RegistryServer({
      store: images.store,
      bases: images.bases,
      usage: images.usage,
      clock: systemClock,
      log: pino({ level: 'silent' }),
      needRoom: () => undefined,
    });
    const find = (user: string): Credential => ({
      secretAccessKey: 'x',
      principal: { kind: 'iam', accountId: user, arn: user, accessKeyId: user, tags: {} },
    });
    await app.register(served([registry.routes], { keys: { find } }));
    const address = await app.listen({ port: 0, host: '127.0.0.1' });
    onTestFinished(() => app.close());
    const call = (method: string, path: string, body?: Uint8Array<ArrayBuffer>, as = 'alice') =>
      fetch(`${address}/v2/${path}`, {
        method,
        body,
        headers: { authorization: `Basic ${btoa(`${as}:x`)}`, 'content-type': MEDIA.ociManifest },
      });

    const pulled = await call('GET', `base/${own.replace(':', '/manifests/')}`);
    const digest = pulled.headers.get('docker-content-digest') ?? '';
    const manifest = Buffer.from(await pulled.arrayBuffer());
    expect([digestOf(manifest), (await images.bases.ensure(own)).digest]).toEqual([digest, digest]);
    expect((await call('HEAD', `base/node/manifests/${digest}`)).status).toBe(200);
    expect(await (await call('GET', 'base/node/tags/list')).json()).toMatchObject({
      tags: expect.arrayContaining(['22']),
    });
    expect((await call('GET', 'base/ruby/tags/list')).status).toBe(404);
    expect((await call('GET', 'base/ruby/manifests/3')).status).toBe(404);
    expect((await call('PUT', 'base/node/manifests/22', new Uint8Array(manifest))).status).toBe(403);

    const { config, layers } = (await images.store.readImage(digest)).manifest;
    // Control: without the mount the blobs are not the account's.
    expect((await call('PUT', 'mine/manifests/v1', new Uint8Array(manifest))).status).toBe(404);
    for (const part of [config, ...layers])
      expect((await call('POST', `mine/blobs/uploads/?mount=${part.digest}&from=base/node`)).status).toBe(201);
    expect((await call('PUT', 'mine/manifests/v1', new Uint8Array(manifest))).status).toBe(201);
    expect((await images.resolve('platform/mine:v1', { accountId: 'alice' })).digest).toBe(digest);
    expect((await call('GET', `mine/blobs/${config.digest}`, undefined, 'bob')).status).toBe(404);
  });
});

describe('making bases', () => {
  it('tells what it does, makes each once, and gives the same bytes again from the same inputs', async () => {
    const [first, second] = await Promise.all([images.bases.ensure(own), images.bases.ensure(own)]);
    expect(second.digest).toBe(first.digest);
    expect(told.filter((event) => event.base === own && event.step === 'writing').length).toBe(1);
    const fresh = await openImages(await tempDir());
    expect((await fresh.bases.ensure(own)).digest).toBe(first.digest);
    // A blob that went missing is made again.
    const { manifest } = await images.store.readImage(first.digest);
    await images.store.blobs.remove(manifest.layers[0]?.digest ?? '');
    expect((await images.bases.ensure(own)).digest).toBe(first.digest);
    expect(await images.store.blobs.has(manifest.layers[0]?.digest ?? '')).toBe(true);
  });

  it('names what can be had when asked for something else', async () => {
    await expect(images.resolve('platform/base/ruby:3')).rejects.toMatchObject({
      reason: 'runtime-unavailable',
      message: expect.stringContaining(own),
    });
    await expect(images.bases.ensure('python:3.8')).rejects.toMatchObject({
      reason: 'runtime-unavailable',
      message: expect.stringContaining('apt-get install -y python3'),
    });
    const bare = await openImages(await tempDir(), { pythonDirs: [] });
    expect(await bare.codeRuntimes()).toEqual(['NODE_22']);
    await expect(bare.bases.ensure('python:3.11')).rejects.toMatchObject({
      message: expect.stringContaining('no Python at all'),
    });
  });
});
