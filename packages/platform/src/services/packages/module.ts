import { join } from 'node:path';
import type { ServiceModule } from '../../service-module.ts';
import { npmPackage } from './npm-package.ts';
import { packageRoutes } from './package-routes.ts';
import { PackageShelf } from './package-shelf.ts';
import { pythonWheel } from './python-wheel.ts';

/** The platform is run from its checkout. */
const CHECKOUT = join(import.meta.dirname, '../../../../..');

/** The SDKs and the command line, for machines without a clone: none of our names is in a registry yet. */
export const module: ServiceModule<'packages', never> = {
  create({ clock, log, temporaryDir }) {
    const shelf = new PackageShelf({
      makers: [
        () => pythonWheel(join(CHECKOUT, 'python/agentplatform')),
        () => npmPackage(join(CHECKOUT, 'packages/sdk'), temporaryDir),
        () => npmPackage(join(CHECKOUT, 'packages/cli'), temporaryDir),
      ],
      clock,
      log,
    });
    return { operations: {}, routes: [packageRoutes(shelf)], port: undefined };
  },
};
