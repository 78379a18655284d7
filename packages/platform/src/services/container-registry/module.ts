import type { ServiceModule } from '../../service-module.ts';
import { RegistryServer } from './server.ts';

/** The registry that images are pushed to and pulled from; the store is the kernel's (`kernel/images`). */
export const module: ServiceModule<'container-registry', never> = {
  create({ images: { store, bases }, config: { quotas }, room, clock, log }) {
    const limits = { accountBytes: quotas.imageBytesPerAccount, accountParts: quotas.imagePartsPerAccount };
    const server = new RegistryServer({ store, bases, limits, needRoom: room.need, clock, log });
    return { operations: {}, routes: [server.routes], port: undefined, stop: () => server.close() };
  },
};
