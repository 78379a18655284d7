import { symlinkSync } from 'node:fs';
import { request } from 'node:http';
import { connect, createServer } from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { type DevServer, startDevServer } from '../src/server/dev-server.ts';
import { isLoopback } from '../src/server/loopback.ts';
import { handset, startHandset } from './support/cli.ts';
import { scaffoldCopy, smallProject, text, write } from './support/project.ts';

async function serving(root: string, live = true): Promise<DevServer> {
  await handset(root, ['build']);
  const server = await startDevServer({ root, host: 'localhost', port: 0, live });
  onTestFinished(() => server.close());
  return server;
}

/** Send a request line exactly as written and return the whole answer. */
function raw(port: number, head: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.write(`${head}\r\nConnection: close\r\n\r\n`));
    let answer = '';
    socket.on('data', (chunk) => {
      answer += chunk.toString('latin1');
    });
    socket.on('close', () => resolve(answer));
    socket.on('error', reject);
  });
}

describe('the dev server', () => {
  it('serves index.html at / and everything with its type', async () => {
    const server = await serving(scaffoldCopy(), false);
    const types = {
      '/': 'text/html; charset=utf-8',
      '/index.html': 'text/html; charset=utf-8',
      '/config.xml': 'application/xml; charset=utf-8',
      '/icon.png': 'image/png',
      '/javascripts/app.js': 'text/javascript; charset=utf-8',
      '/javascripts/app.js.map': 'application/json; charset=utf-8',
      '/light/css/light.css': 'text/css; charset=utf-8',
      '/light/css/light.css?build=1': 'text/css; charset=utf-8',
    };
    for (const [name, type] of Object.entries(types)) {
      const response = await fetch(server.url + name);
      expect([name, response.status, response.headers.get('content-type')]).toEqual([name, 200, type]);
      expect(response.headers.get('cache-control')).toBe('no-store');
      expect(response.headers.get('x-content-type-options')).toBe('nosniff');
    }
    expect((await fetch(`${server.url}/gone.js`)).status).toBe(404);
    expect((await fetch(`${server.url}/`, { method: 'POST' })).status).toBe(405);
    const head = await fetch(`${server.url}/icon.png`, { method: 'HEAD' });
    expect([head.status, head.headers.get('content-length'), (await head.arrayBuffer()).byteLength]).toEqual([
      200,
      '1002',
      0,
    ]);
  });

  it('adds the live script while it serves and never to the file', async () => {
    const root = scaffoldCopy();
    const server = await serving(root);
    expect(await (await fetch(server.url)).text()).toContain('<script src="/__handset/live.js?build=');
    expect(text(root, 'public/index.html')).not.toContain('__handset');
  });

  it('leads to no file outside public/', async () => {
    const root = smallProject({ 'secret.txt': 'SECRET', 'public/.hidden': 'SECRET' });
    const server = await serving(root);
    symlinkSync(path.join(root, 'secret.txt'), path.join(root, 'public/link.txt'));
    symlinkSync(root, path.join(root, 'public/out'));
    // The channel is open where it should be: a file inside is served by the same kind of request.
    write(root, { 'public/inside.txt': 'INSIDE' });
    expect(await raw(server.port, 'GET /inside.txt HTTP/1.1\r\nHost: localhost')).toContain('INSIDE');
    const attempts = [
      '/../secret.txt',
      '/..%2fsecret.txt',
      '/%2e%2e/secret.txt',
      '/light/../../secret.txt',
      '/light/%2e%2e/%2e%2e/secret.txt',
      '/..\\secret.txt',
      '/..%5csecret.txt',
      '//secret.txt',
      '/./../secret.txt',
      `/${root}/secret.txt`,
      '/secret.txt%00.html',
      '/C:/secret.txt',
      '/%c0%ae%c0%ae/secret.txt',
      '/%',
      '/.hidden',
      '/link.txt',
      '/out/secret.txt',
      'secret.txt',
      'http://localhost/../secret.txt',
    ];
    for (const attempt of attempts) {
      const answer = await raw(server.port, `GET ${attempt} HTTP/1.1\r\nHost: localhost`);
      expect([attempt, answer.split('\r\n')[0]]).toEqual([attempt, expect.stringMatching(/HTTP\/1\.1 (404|400)/)]);
      expect(answer).not.toContain('SECRET');
    }
  });

  it('listens on this machine alone', async () => {
    const server = await serving(smallProject());
    const { networkInterfaces } = await import('node:os');
    const outside = Object.values(networkInterfaces())
      .flat()
      .filter((a) => a && !a.internal && a.family === 'IPv4');
    const reach = (host: string): Promise<string> =>
      new Promise((resolve) => {
        const socket = connect({ host, port: server.port, timeout: 2000 }, () => resolve('open')).on('error', () =>
          resolve('closed'),
        );
        socket.on('connect', () => socket.destroy());
      });
    expect(await reach('127.0.0.1')).toBe('open');
    for (const address of outside) expect(await reach(address?.address ?? '')).toBe('closed');
  });

  it('answers to no other name, so that a foreign page cannot read it through its own', async () => {
    const server = await serving(smallProject());
    const status = (host: string): Promise<number | undefined> =>
      new Promise((resolve) => {
        request({ port: server.port, host: '127.0.0.1', headers: { host } }, (r) =>
          resolve(r.resume().statusCode),
        ).end();
      });
    expect(await status(`localhost:${server.port}`)).toBe(200);
    expect(await status(`127.0.0.1:${server.port}`)).toBe(200);
    expect(await status('evil.example')).toBe(403);
    expect(await status(`localhost.evil.example:${server.port}`)).toBe(403);
  });

  it.each([
    ['127.0.0.2', 'http://127.0.0.2:', true],
    ['::1', 'http://[::1]:', true],
    ['0:0:0:0:0:0:0:1', 'http://[0:0:0:0:0:0:0:1]:', true],
    ['0.0.0.0', 'http://localhost:', false],
    ['::', 'http://localhost:', false],
  ])(
    'with --host %s it is served at the address that it names, to its own name if it stays local',
    async (host, url, local) => {
      const root = smallProject();
      await handset(root, ['build']);
      const server = await startDevServer({ root, host, port: 0, live: false });
      onTestFinished(() => server.close());
      expect([server.url.startsWith(url), server.local]).toEqual([true, local]);
      expect((await fetch(server.url)).status).toBe(200);
      const foreign = await new Promise((resolve) => {
        const { hostname, port } = new URL(server.url);
        request({ port, host: hostname.replace(/[[\]]/g, ''), headers: { host: 'evil.example' } }, (r) =>
          resolve(r.resume().statusCode),
        ).end();
      });
      expect(foreign).toBe(local ? 403 : 200);
    },
  );

  it('knows this machine in every notation', () => {
    const local = [
      'localhost',
      '127.0.0.1',
      '127.9.9.9',
      '::1',
      '0:0:0:0:0:0:0:1',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
    ];
    expect(local.filter((host) => !isLoopback(host))).toEqual([]);
    const others = [
      '0.0.0.0',
      '::',
      '127.0.0.1.evil.example',
      '127.999.0.1',
      '128.0.0.1',
      '::2',
      '::ffff:10.0.0.1',
      '',
      'evil',
    ];
    expect(others.filter(isLoopback)).toEqual([]);
  });

  it('says of a foreign address that it is none of this machine', async () => {
    for (const host of ['192.0.2.1', 'no-such-host.invalid']) {
      const { status, stderr } = await handset(smallProject(), ['watch', '--server', '--port', '0', '--host', host]);
      expect([status, stderr]).toEqual([2, expect.stringContaining(`${host} is no address of this machine`)]);
    }
  });

  it('limits the pages that listen', async () => {
    const server = await serving(smallProject());
    const ending = new AbortController();
    onTestFinished(() => ending.abort());
    const open = () => fetch(`${server.url}/__handset/events`, { signal: ending.signal });
    const statuses = await Promise.all(Array.from({ length: 70 }, async () => (await open()).status));
    expect(statuses.filter((s) => s === 200)).toHaveLength(64);
    expect(statuses.filter((s) => s === 503)).toHaveLength(6);
  });
});

describe('a port that is in use', () => {
  it('names who has it and the next free one', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as { port: number };
    const { status, stderr } = await handset(smallProject(), ['watch', '--server', '--port', String(port)]);
    expect(status).toBe(1);
    expect(stderr).toContain(`Port ${port} is in use`);
    const owner = process.platform === 'linux' ? `${path.basename(process.argv0)} (process ${process.pid}: ` : '';
    expect(stderr).toContain(owner);
    const next = Number(/--port (\d+)/.exec(stderr)?.[1]);
    expect(next).toBeGreaterThan(port);
    // The way out works.
    const running = startHandset(smallProject(), ['watch', '--server', '--port', String(next)]);
    await running.output(new RegExp(`serving .* at http://localhost:${next}`));
    expect((await fetch(`http://localhost:${next}/`)).status).toBe(200);
  });

  it('is in use, too, where browsers may take localhost for another address', async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, '::1', resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as { port: number };
    const { status, stderr } = await handset(smallProject(), ['watch', '--server', '--port', String(port)]);
    expect([status, stderr]).toEqual([1, expect.stringContaining(`Port ${port} is in use by`)]);
    // Nothing of ours is left there.
    await expect(fetch(`http://127.0.0.1:${port}/`)).rejects.toThrow();
  });

  it('is 3333 unless something else is asked for', async () => {
    const { DEFAULT_SETTINGS } = await import('../src/project/settings.ts');
    expect(DEFAULT_SETTINGS.port).toBe(3333);
    const root = smallProject({ 'handset.config.json': '{ "port": 0 }' });
    const running = startHandset(root, ['watch', '--server']);
    const [, url = ''] = await running.output(/at (http:\/\/localhost:\d+)/);
    expect(url).not.toBe('http://localhost:3333');
    expect((await fetch(url)).status).toBe(200);
  });
});
