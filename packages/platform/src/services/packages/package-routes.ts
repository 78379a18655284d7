import { errors } from '@agentplatform/contract';
import type { Route, RouteSet } from '../../kernel/http/index.ts';
import type { PackageShelf } from './package-shelf.ts';

const PATH = '/_platform/packages';

/** `/_platform/packages`: which packages there are; below it each of them by its file name, and no other file. */
export function packageRoutes(shelf: Pick<PackageShelf, 'all'>): RouteSet {
  const common = {
    method: 'GET',
    open: 'everybody',
    because: 'it is the source of the platform, which is public, and nothing of this installation',
  } as const satisfies Partial<Route>;
  return {
    name: 'packages',
    routes: [
      {
        ...common,
        url: PATH,
        answer: async () => ({ packages: (await shelf.all()).map(({ fileName }) => `${PATH}/${fileName}`) }),
      },
      {
        ...common,
        url: `${PATH}/:fileName`,
        async answer({ params, reply }) {
          const found = (await shelf.all()).find(({ fileName }) => fileName === params.fileName);
          if (!found)
            throw errors.resourceNotFound('There is no package of this name.', { remedy: `GET ${PATH} lists them.` });
          return reply.header('content-type', 'application/octet-stream').send(found.bytes);
        },
      },
    ],
    headers: () => ({ 'x-content-type-options': 'nosniff' }),
  };
}
