import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { errors, ServiceError } from '@agentplatform/contract';
import fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { IamPrincipal } from '../../kernel/auth/index.ts';
import { served } from '../../kernel/http/testing/serve-routes.ts';
import {
  DEFAULT_IMAGE_LIMITS,
  ImageError,
  ImageStore,
  machinePlatform,
  writeImage,
  writeLayer,
} from '../../kernel/images/index.ts';
import { baseImageRoutes } from './base-image-routes.ts';

const ACCOUNT = '111122223333';
const arn = `arn:aws:iam::${ACCOUNT}:root`;
const root: IamPrincipal = { kind: 'iam', accountId: ACCOUNT, arn, accessKeyId: 'AKIAROOT', tags: {} };

let folder: string;
let store: ImageStore;
let digest: string;
let layer: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'base-image-routes-'));
  store = new ImageStore(folder, DEFAULT_IMAGE_LIMITS);
  await store.init();
  const written = await writeLayer(store.blobs, [{ type: 'directory', path: 'app', mode: 0o755, uid: 0, gid: 0 }]);
  layer = written.digest;
  const run = { entrypoint: [], cmd: ['/agent'], env: ['A=1'], workingDir: '/app', user: '' };
  digest = await writeImage(store, { platform: machinePlatform(), layers: [written], run });
});
afterAll(() => rm(folder, { recursive: true, force: true }));

/** Asks for a base as somebody who may not do what is in `denied`; `required` gets the rights that were asked for. */
async function ask(path: string, body: string, denied: string[] = [], required: string[] = []) {
  const require = (action: string, resource: string): void => {
    required.push(`${action} ${resource}`);
    if (denied.includes(action)) throw errors.accessDenied(`${action} is not allowed`);
  };
  const app = fastify();
  app.setErrorHandler((error, _request, reply) =>
    reply.code(error instanceof ServiceError ? error.status : 500).send({ message: String(error) }),
  );
  const routes = baseImageRoutes({
    images: {
      store,
      resolve: async (uri) => {
        if (uri.startsWith('down.example')) throw new ImageError('unreachable', 'no such host');
        if (uri.startsWith('private.example')) throw new ImageError('unauthorized', 'not for you');
        return { digest, architecture: 'amd64', sizeBytes: 1 };
      },
    },
    credentials: { forImage: async () => undefined },
  });
  await app.register(
    served([routes], {
      authenticator: { authenticate: () => ({ principal: root, body: { kind: 'unsigned' } }) },
      authorize: ({ action, resource }) => require(action, resource),
    }),
  );
  const answer = await app.inject({ method: 'POST', url: `/_platform/repositories/${path}/base`, payload: body });
  await app.close();
  return { status: answer.statusCode, body: answer.json() };
}

const wants = (image: unknown): string => JSON.stringify({ image });

describe('the base of an image that a client puts together', () => {
  it('is fetched, and its layers are lent to the account alone', async () => {
    expect(await store.repositories.hasBlob(ACCOUNT, 'team/agent', layer)).toBe(false);
    const { status, body } = await ask('team%2Fagent', wants('registry.example/base:1'));
    expect(status).toBe(200);
    expect(body).toMatchObject({ digest, layers: [{ digest: layer }], config: { config: { Env: ['A=1'] } } });
    expect(await store.repositories.hasBlob(ACCOUNT, 'team/agent', layer)).toBe(true);
    expect(await store.repositories.hasBlob('444455556666', 'team/agent', layer)).toBe(false);
  });

  it('takes the right to push, and the right to what is named', async () => {
    const required: string[] = [];
    await ask('agent', wants('platform/other:1'), [], required);
    await ask('agent', wants('oci:/srv/image'), [], required);
    expect(required).toEqual([
      `agentplatform:PushImage arn:aws:agentplatform::${ACCOUNT}:image/agent`,
      `agentplatform:PullImage arn:aws:agentplatform::${ACCOUNT}:image/other`,
      `agentplatform:PushImage arn:aws:agentplatform::${ACCOUNT}:image/agent`,
      'agentplatform:UseHostImage *',
    ]);
    for (const [right, image] of [
      ['PushImage', 'scratch'],
      ['PullImage', 'platform/other:1'],
      ['UseHostImage', 'oci:/srv/image'],
    ])
      expect(await ask('agent', wants(image), [`agentplatform:${right}`])).toMatchObject({ status: 403 });
  });

  it('is nothing for scratch, and told apart when it cannot be reached or had', async () => {
    expect((await ask('agent', wants('scratch'))).body).toMatchObject({ layers: [], config: { os: 'linux' } });
    expect((await ask('agent', wants('down.example/a:1'))).body).toEqual({ unreachable: 'no such host' });
    expect(await ask('agent', wants('private.example/a:1'))).toMatchObject({ status: 403 });
  });

  it.each(['', 'not json', '[]', 'null', '{"image":1}', '{"image":""}'])('%j is refused', async (body) => {
    expect(await ask('agent', body)).toMatchObject({ status: 400 });
  });

  it('has a repository', async () => {
    expect(await ask('No%20Name', wants('scratch'))).toMatchObject({ status: 400 });
  });
});
