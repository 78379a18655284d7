import { findSolver } from '@agentplatform/policy-engine';
import type { ServiceModule } from '../../service-module.ts';
import { doctorRoutes } from './doctor-routes.ts';
import { healthRoutes } from './health-routes.ts';
import { metricsRoutes } from './metrics-routes.ts';
import { platformProof } from './platform-proof.ts';
import { preparationRoutes } from './preparation-routes.ts';
import { checkPublicAddress } from './public-address.ts';
import { usageRoutes } from './usage-routes.ts';

/** What operators ask a running server: whether it is well, what it measures, what the machine offers. */
export const module: ServiceModule<'administration', never> = {
  create(kernel) {
    const {
      config,
      changes,
      database,
      room,
      metrics,
      images,
      fileSystems,
      probe,
      life,
      masterKeys,
      calls,
      clock,
      log,
    } = kernel;
    const proof = platformProof(masterKeys);
    const readiness = [
      { name: 'database', check: () => database.health() },
      { name: 'changes', check: () => changes.health() },
      // Whoever deletes must reach the server then.
      { name: 'disk', advisory: true, check: async () => ({ ok: !room.low, reason: 'it is nearly full' }) },
    ];
    return {
      operations: {},
      routes: [
        healthRoutes({ readiness, proof, clock, log }),
        metricsRoutes({ metrics, access: config.metrics }),
        doctorRoutes({
          serves: (operation) => calls.serves(operation),
          probe,
          codeRuntimes: () => images.codeRuntimes(),
          sharedPlaces: () => fileSystems.places.report(),
          life,
          disk: () => room.report(),
          database,
          solver: findSolver,
          publicAddress: () =>
            checkPublicAddress({
              publicUrl: config.publicUrl,
              host: config.host,
              endpoint: kernel.reach.endpoint ?? `http://${config.host}:${config.port}`,
              outbound: kernel.ownOutbound,
              proof,
            }),
        }),
        preparationRoutes(kernel.preparations),
        usageRoutes({ database, clock }),
      ],
      port: undefined,
    };
  },
};
