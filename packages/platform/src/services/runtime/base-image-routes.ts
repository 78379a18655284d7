import { errors } from '@agentplatform/contract';
import { closeSignal, type KnownCall, type RouteSet, readMembers, SIGNED } from '../../kernel/http/index.ts';
import {
  ImageError,
  type ImagesRoom,
  imageProblem,
  isRepositoryName,
  machinePlatform,
  mountLayers,
  repositoryArn,
} from '../../kernel/images/index.ts';
import { rightsFor } from './artifact.ts';
import type { RegistryCredentialsStore } from './registry-credentials.ts';

export interface BaseImageDeps {
  images: Pick<ImagesRoom, 'resolve' | 'store'>;
  credentials: Pick<RegistryCredentialsStore, 'forImage'>;
}

/** How long an image may take to arrive. */
const FETCH_MS = 10 * 60_000;

/**
 * `POST /_platform/repositories/{name}/base` `{"image"}`: fetches what an image in that repository is to stand on, for a client
 * that puts images together without a builder. Answers its layers, which the account may then name without sending them, and
 * its config; or `{"unreachable": why}` when its registry cannot be reached.
 */
export function baseImageRoutes(deps: BaseImageDeps): RouteSet {
  return {
    name: 'base-images',
    routes: [
      {
        method: 'POST',
        url: '/_platform/repositories/:name/base',
        credentials: SIGNED,
        ask(call) {
          const { name = '' } = call.params;
          if (!isRepositoryName(name)) throw errors.invalidField('name', 'must be the name of a repository');
          return {
            rights: { action: 'agentplatform:PushImage', resource: repositoryArn(call.accountId, name) },
            answer: () => lendBase(deps, call, name),
          };
        },
      },
    ],
  };
}

async function lendBase({ images, credentials }: BaseImageDeps, call: KnownCall, name: string) {
  const { accountId, body, require, reply } = call;
  const image = readImageName(body);
  if (image === 'scratch') {
    const { os, architecture } = machinePlatform();
    return { layers: [], config: { os, architecture } };
  }
  for (const { action, resource } of rightsFor({ containerConfiguration: { containerUri: image } }, accountId))
    require(action, resource);
  const signal = AbortSignal.any([closeSignal(reply.raw), AbortSignal.timeout(FETCH_MS)]);
  try {
    const login = await credentials.forImage(accountId, image);
    const { digest } = await images.resolve(image, { accountId, signal, ...(login ? { credentials: login } : {}) });
    return await mountLayers(images.store, accountId, name, digest);
  } catch (error) {
    if (!(error instanceof ImageError)) throw error;
    if (error.reason === 'unreachable') return { unreachable: error.message };
    throw imageProblem(error, 'image');
  }
}

function readImageName(body: Buffer): string {
  const { image } = readMembers(body, '{"image": …}');
  if (typeof image !== 'string' || image === '') throw errors.invalidField('image', 'must be the name of an image');
  return image;
}
