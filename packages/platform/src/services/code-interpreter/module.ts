import { NamedNetworks, subnetMap } from '../../kernel/sandbox/index.ts';
import type { ServiceModule } from '../../service-module.ts';
import { codeInterpreterMigrations, codeInterpreterRetention, createCodeInterpreterService } from './index.ts';
import { CODE_INTERPRETER_OPERATIONS, type CodeInterpreterOperation } from './operations.ts';
import { explainStart, INTERPRETER_SESSIONS } from './session-kind.ts';

const SUBNETS = 'codeInterpreter.subnets';

/** Code interpreters, in the sandboxes that the configuration describes. */
export const module: ServiceModule<'codeInterpreter', CodeInterpreterOperation> = {
  operations: CODE_INTERPRETER_OPERATIONS,
  migrations: codeInterpreterMigrations,
  retention: (database, { sessionsMs }) => [codeInterpreterRetention(database, sessionsMs)],
  create(kernel) {
    const { config, network, identifiers, roleExists } = kernel;
    const { builtInNetwork, subnets = '', image, prepare, warmSessions, executionSeconds } = config.codeInterpreter;
    const service = createCodeInterpreterService({
      ...kernel,
      limits: config.sandbox.limits,
      builtInNetwork,
      networks: new NamedNetworks({ setting: SUBNETS, public: network, subnets: subnetMap(subnets, SUBNETS) }),
      dataDir: config.data,
      cacheDir: kernel.cache.path,
      image,
      prepare: prepare === 'on',
      warmSessions,
      executionSeconds,
      roleExists,
      roleEnvironment: (role) => kernel.sandboxCredentials.environment(role),
      newIdSuffix: identifiers.suffix,
      newSessionId: () => identifiers.session().replaceAll('-', ''),
    });
    const { planOf, imagesInUse } = service.port;
    return { ...service, sessionKind: { name: INTERPRETER_SESSIONS, planOf, explain: explainStart }, imagesInUse };
  },
};
