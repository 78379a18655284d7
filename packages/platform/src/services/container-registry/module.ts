import type { ServiceModule } from '../../service-module.ts';
import { RegistryServer } from './server.ts';

/** The registry that images are pushed to and pulled from; the store is the kernel's (`kernel/images`). */
export const module: ServiceModule<'container-registry', never> = {
  create({ images: { store, bases, usage }, room, clock, log }) {
    const server = new RegistryServer({ store, bases, usage, needRoom: room.need, clock, log });
    return { operations: {}, routes: [server.routes], port: undefined, stop: () => server.close() };
  },
};
