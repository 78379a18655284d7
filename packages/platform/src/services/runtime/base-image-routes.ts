import { errors } from '@agentplatform/contract';
import type { FastifyPluginAsync } from 'fastify';
import type { Principal } from '../../kernel/auth/principal.ts';
import { type AdminGuard, readMembers } from '../../kernel/http/admin-guard.ts';
import { closeSignal } from '../../kernel/http/request-context.ts';
import {
  ImageError,
  type ImagesRoom,
  isRepositoryName,
  machinePlatform,
  mountLayers,
  repositoryArn,
} from '../../kernel/images/index.ts';
import { imageProblem, rightsFor } from './artifact.ts';
import type { RegistryCredentialsStore } from './registry-credentials.ts';

export interface BaseImageDeps {
  images: Pick<ImagesRoom, 'resolve' | 'store'>;
  credentials: Pick<RegistryCredentialsStore, 'forImage'>;
  guard: AdminGuard;
  authorize(request: {
    principal: Principal;
    action: string;
    resource: string;
    conditions: Record<string, never>;
    sourceIp: string | undefined;
  }): void;
}

/** How long an image may take to arrive. */
const FETCH_MS = 10 * 60_000;

/**
 * `POST /_platform/repositories/{name}/base` `{"image"}`: fetches what an image in that repository is to stand on, for a client
 * that puts images together without a builder. Answers its layers, which the account may then name without sending them, and
 * its config; or `{"unreachable": why}` when its registry cannot be reached.
 */
export function baseImageRoutes(deps: BaseImageDeps): FastifyPluginAsync {
  const { images } = deps;
  return async (app) => {
    app.removeAllContentTypeParsers();
    app.addContentTypeParser('*', (_request, _payload, done) => done(null));
    app.post<{ Params: { name: string } }>('/_platform/repositories/:name/base', async (request, reply) => {
      const { name } = request.params;
      if (!isRepositoryName(name)) throw errors.invalidField('name', 'must be the name of a repository');
      const { principal, accountId, body } = await deps.guard(request, 'agentplatform:PushImage', (account) =>
        repositoryArn(account, name),
      );
      const image = readImageName(body);
      if (image === 'scratch') {
        const { os, architecture } = machinePlatform();
        return { layers: [], config: { os, architecture } };
      }
      const sourceIp = request.raw.socket.remoteAddress;
      for (const right of rightsFor({ containerConfiguration: { containerUri: image } }, accountId))
        deps.authorize({ principal, ...right, conditions: {}, sourceIp });
      const signal = AbortSignal.any([closeSignal(reply.raw), AbortSignal.timeout(FETCH_MS)]);
      try {
        const credentials = await deps.credentials.forImage(accountId, image);
        const { digest } = await images.resolve(image, { accountId, signal, ...(credentials ? { credentials } : {}) });
        return await mountLayers(images.store, accountId, name, digest);
      } catch (error) {
        if (!(error instanceof ImageError)) throw error;
        if (error.reason === 'unreachable') return { unreachable: error.message };
        throw imageProblem(error, 'image');
      }
    });
  };
}

function readImageName(body: Buffer): string {
  const { image } = readMembers(body, '{"image": …}');
  if (typeof image !== 'string' || image === '') throw errors.invalidField('image', 'must be the name of an image');
  return image;
}
