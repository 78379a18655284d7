import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { expect, it, onTestFinished } from 'vitest';
import { createAccessPolicy } from './access-policy.ts';
import { startEgress } from './egress.ts';
import { isPublicAddress } from './public-address.ts';

it('knows public addresses', () => {
  const open = ['8.8.8.8', '1.1.1.1', '172.32.0.1', '100.128.0.1', '2606:4700::1111', '2a00:1450::1'];
  expect(open.filter((address) => !isPublicAddress(address))).toEqual([]);
  const closed =
    '0.0.0.0 10.1.2.3 100.64.0.1 127.0.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.168.0.1 192.0.2.1 198.18.0.1 224.0.0.1 255.255.255.255 ' +
    ':: ::1 ::ffff:8.8.8.8 ::ffff:127.0.0.1 ::7f00:1 64:ff9b::7f00:1 fc00::1 fd00:ec2::254 fe80::1 ff02::1 2001:db8::1 2002:7f00:1::1 2001::1 localhost 1 0x7f.1';
  expect(closed.split(' ').filter(isPublicAddress)).toEqual([]);
});

/** An inside server, and an egress for which every name means it. */
async function surroundings(config: (port: number) => string) {
  const seen: string[] = [];
  const inside = createServer(({ url, headers, method }, response) => {
    seen.push(`${method} ${headers.host} ${url} ${'proxy-connection' in headers}`);
    response.writeHead(201, { 'x-inside': 'yes' }).end('INSIDE');
  });
  await new Promise<void>((done) => inside.listen(0, '127.0.0.1', done));
  const { port } = inside.address() as { port: number };
  const refused: string[] = [];
  let asked = 0;
  const egress = await startEgress({
    allows: createAccessPolicy(`<widget>${config(port)}</widget>`),
    onRefused: (url) => refused.push(url),
    resolve: (name) => {
      asked += 1;
      return name === 'gone.example' ? Promise.reject(new Error('gone')) : Promise.resolve(['192.0.2.9', '127.0.0.1']);
    },
  });
  onTestFinished(async () => {
    await egress.close();
    inside.close();
  });
  const via = new URL(egress.url);
  const get = (url: string): Promise<number | string> =>
    new Promise((done) => {
      const headers = { host: new URL(url).host, 'proxy-connection': 'keep-alive' };
      request({ host: via.hostname, port: via.port, path: url, headers }, (r) => done(r.resume().statusCode ?? 0))
        .on('error', () => done('no answer'))
        .end();
    });
  const tunnel = (target: string): Promise<string> =>
    new Promise((done) => {
      let text = '';
      const socket = connect(Number(via.port), via.hostname, () =>
        socket.write(`CONNECT ${target} HTTP/1.1\r\nhost: ${target}\r\n\r\n`),
      );
      socket.on('data', (chunk) => {
        text += chunk.toString();
        if (text.endsWith('\r\n\r\n') && text.includes(' 200 '))
          socket.write('GET /t HTTP/1.1\r\nhost: t\r\nconnection: close\r\n\r\n');
      });
      socket.on('close', () => done(text)).on('error', () => done(text));
    });
  return { port, seen, refused, get, tunnel, asked: () => asked };
}

const access = (...origins: string[]) => origins.map((origin) => `<access origin="${origin}"/>`).join('');

it('carries what config.xml allows, to the address that was looked at, without what is between neighbours', async () => {
  const { port, seen, get, tunnel, asked } = await surroundings((p) =>
    access(`http://news.example:${p}`, `http://127.0.0.1:${p}`),
  );
  expect(await get(`http://news.example:${port}/a?b`)).toBe(201);
  expect(asked()).toBe(1);
  expect(await tunnel(`news.example:${port}`)).toMatch(/ 200 [\s\S]* 201 [\s\S]*INSIDE/);
  expect(await get(`http://127.0.0.1:${port}/n`)).toBe(201);
  expect(seen).toEqual([`GET news.example:${port} /a?b false`, 'GET t /t false', `GET 127.0.0.1:${port} /n false`]);
});

it('refuses what config.xml does not name, names that lead inside, and nonsense', async () => {
  const { port, seen, refused, get, tunnel } = await surroundings((p) => access('*', `http://only.example:${p}`));
  for (const host of [
    'news.example',
    'only.example',
    '127.0.0.1',
    'localhost',
    'gone.example',
    '[::1]',
    '[::ffff:7f00:1]',
  ]) {
    expect([host, await get(`http://${host}:${port}/`)]).toEqual([host, 'no answer']);
    expect([host, await tunnel(`${host}:${port}`)]).toEqual([host, 'HTTP/1.1 403 Forbidden\r\n\r\n']);
  }
  expect(refused).toContain(`only.example:${port}`);
  expect(await get('ftp://news.example/')).toBe('no answer');
  expect(await tunnel('::::')).toBe('');
  expect(seen).toEqual([]);
});
