import type { ServiceModule } from '../../service-module.ts';
import { usageRoutes } from './usage-routes.ts';

/** Bills: what was metered, by whatever it is asked for, and what it costs. */
export const module: ServiceModule<'metering', never> = {
  create: ({ config, database, clock }) => ({
    operations: {},
    port: undefined,
    routes: [usageRoutes({ database, clock, prices: config.metering.prices })],
  }),
};
