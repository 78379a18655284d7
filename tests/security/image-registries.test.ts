import { CreateAgentRuntimeCommand } from '@aws-sdk/client-bedrock-agentcore-control';
import pino from 'pino';
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { ImageError } from '../../packages/platform/src/kernel/images/images.ts';
import { createImages } from '../../packages/platform/src/kernel/images/index.ts';
import { type MadeImage, makeImage } from '../../packages/platform/src/kernel/images/testing/image.ts';
import { tempDir } from '../../packages/platform/src/kernel/images/testing/temp-dir.ts';
import { createOutbound } from '../../packages/platform/src/kernel/outbound/index.ts';
import { clientsOf } from '../support/clients.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';
import {
  attempt,
  type Behaviour,
  ENDLESS,
  fastClock,
  MIB,
  openHostileServer,
  SENSELESS,
  SILENT,
  textOf,
} from './hostile-server.ts';

// Registries are named by the authors of runtimes.

const PASSWORD = 'p4ss-0f-the-registry';
const CREDENTIALS = { username: 'author', password: PASSWORD };
let image: MadeImage;
beforeAll(async () => {
  image = await makeImage([[{ name: 'a', content: 'one' }]]);
});

const answers =
  (body: string | Buffer, head = 'HTTP/1.1 200 OK'): Behaviour =>
  (socket) => {
    socket.write(`${head}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n`);
    socket.end(body);
  };

/** A registry that serves the image, and at one step does what it does. */
function registry(step: RegExp, behave: Behaviour): Behaviour {
  return (socket, head) => {
    const [, path = ''] = head.split(' ');
    const host = /^host: (.*)\r$/im.exec(head)?.[1];
    if (step.test(path)) return behave(socket, head);
    const wantsToken = step.test('/token') && !/^authorization: bearer/im.test(head);
    if (path.startsWith('/v2/app/') && wantsToken)
      return answers('{}', `HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer realm="http://${host}/token"`)(
        socket,
        head,
      );
    const digest = /sha256:[0-9a-f]+/.exec(path)?.[0] ?? '';
    return answers(path.includes('/manifests/') ? image.manifest : (image.blobs.get(digest) ?? '{}'))(socket, head);
  };
}

async function pull(
  host: string,
  outbound = createOutbound({ clock: fastClock(30), allowPrivate: ['127.0.0.0/8'] }),
): Promise<unknown> {
  const images = await createImages({
    dataDir: await tempDir(),
    clock: fastClock(30),
    log: pino({ level: 'silent' }),
    outbound,
  });
  try {
    return await images.resolve(`${host}/app:v1`, { accountId: '111122223333', credentials: CREDENTIALS });
  } finally {
    await images.close();
    await outbound.close();
  }
}
const hostOf = (origin: string): string => new URL(origin).host;

describe('a registry', () => {
  it('that serves the image is pulled from, with a token where it wants one', async () => {
    for (const step of [/^nothing/, /^\/token/]) {
      const good = await openHostileServer(registry(step, answers('{"token":"t"}')));
      expect(await pull(hostOf(good.origin))).toMatchObject({ digest: image.digest });
      await good.close();
    }
  });

  it.each([
    ['manifest', /\/manifests\//],
    ['blobs', /\/blobs\//],
    ['token', /^\/token/],
    ['front door', /^\/v2\/$/],
  ])(
    'is given up in bounded time and bytes, whatever its %s is',
    async (what, step) => {
      const all = { ...SILENT, ...ENDLESS, ...SENSELESS };
      const behaviours = Object.fromEntries(
        Object.entries(all).map(([name, behave]) => [name, registry(step, behave)]),
      );
      const came = await attempt(behaviours, (origin) => pull(hostOf(origin)));
      for (const { name, error, requests, sent } of came) {
        // What it says at the front door is nobody's business.
        if (what === 'front door') expect(error, name).toBeUndefined();
        else expect(error, name).toBeInstanceOf(ImageError);
        expect(textOf(error), name).not.toContain(PASSWORD);
        expect(requests, name).toBeLessThanOrEqual(30);
        if (name !== 'an endless extension of a chunk') expect(sent, name).toBeLessThan(96 * MIB);
      }
    },
    120_000,
  );

  it('leads nowhere inside, by redirects or by where its tokens are', async () => {
    // The registry's address is opened, the other one is not.
    const outbound = (...allowPrivate: string[]) => createOutbound({ clock: fastClock(30), allowPrivate });
    const inside = await openHostileServer(answers('{"token":"t"}'));
    const redirect: Behaviour = (socket) =>
      void socket.end(`HTTP/1.1 307 Elsewhere\r\nlocation: ${inside.origin}/\r\ncontent-length: 0\r\n\r\n`);
    const challenge = `HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer realm="${inside.origin}/token"`;
    const doors: Record<string, Behaviour> = {
      manifest: registry(/\/manifests\//, redirect),
      blobs: registry(/\/blobs\//, redirect),
      token: registry(/^\/v2\/app\//, answers('{}', challenge)),
    };
    for (const [name, behave] of Object.entries(doors)) {
      const server = await openHostileServer(behave, '127.0.0.2');
      const host = hostOf(server.origin);
      await expect(pull(host, outbound('127.0.0.2/32')), name).rejects.toBeInstanceOf(ImageError);
      expect(server.heads.length, name).toBeGreaterThan(0);
      expect(inside.heads, name).toEqual([]);
      // The control: where it is open, it is asked.
      await pull(host, outbound('127.0.0.0/8')).catch(() => undefined);
      expect(inside.heads.splice(0).length, name).toBeGreaterThan(0);
      await server.close();
    }
    await inside.close();
  }, 60_000);
});

describe('a platform', () => {
  let platform: TestPlatform | undefined;
  afterEach(() => platform?.dispose());

  const start = async (args: string[] = []): Promise<TestPlatform> => {
    platform = await startTestPlatform({ args: ['--sandbox', 'process', ...args] });
    return platform;
  };
  const create = (at: TestPlatform, containerUri: string) => {
    const clients = clientsOf(at);
    return clients.control
      .send(
        new CreateAgentRuntimeCommand({
          agentRuntimeName: 'pulled',
          roleArn: at.ready.defaultRoleArn,
          networkConfiguration: { networkMode: 'PUBLIC' },
          agentRuntimeArtifact: { containerConfiguration: { containerUri } },
        }),
      )
      .then(
        ({ status }) => String(status),
        (error: Error) => error.message,
      )
      .finally(() => clients.close());
  };

  it('ends while registries keep it waiting', async () => {
    const running = await start(['--allow-private-egress', '127.0.0.0/8', '--shutdown-grace-seconds', '1']);
    const silent = await openHostileServer(registry(/\/blobs\//, () => undefined));
    const pulls = Array.from({ length: 5 }, (_, n) => create(running, `${hostOf(silent.origin)}/app:v${n}`));
    await expect
      .poll(() => silent.heads.filter((head) => head.includes('/blobs/')).length, { timeout: 30_000 })
      .toBe(5);
    expect(await running.end()).toBe(0);
    await expect.poll(silent.connections, { timeout: 10_000 }).toBe(0);
    await Promise.all(pulls);
    await silent.close();
  }, 90_000);

  it('whose own webhook is on a private address opens that address to nobody’s images', async () => {
    const inside = await openHostileServer(answers('{}'));
    const topic = 'arn:aws:sns:us-east-1:123456789012:t';
    const running = await start(['--notifications-webhooks', `${topic}=${inside.origin}`]);
    const uri = `${hostOf(inside.origin)}/app:v1`;
    expect(await create(running, uri)).toContain('leads to no address that the platform calls');
    expect(inside.heads).toEqual([]);
    await running.dispose();
    // The control: opened, it is asked.
    await create(await start(['--allow-private-egress', '127.0.0.0/8']), uri);
    expect(inside.heads.length).toBeGreaterThan(0);
    await inside.close();
  }, 90_000);
});
