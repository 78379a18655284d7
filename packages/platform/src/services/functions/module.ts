import { objectReader } from '../../kernel/objects/index.ts';
import type { ServiceModule } from '../../service-module.ts';
import { createFunctionsService, type FunctionCaller } from './index.ts';
import { explainStart, FUNCTION_SESSIONS } from './session-kind.ts';

declare module '../../service-module.ts' {
  interface Ports {
    functions: FunctionCaller;
  }
}

/** Functions and the API of AWS Lambda, in the sandboxes that the configuration describes. */
export const module: ServiceModule<'functions', never> = {
  create(kernel) {
    const { config, identifiers, iam } = kernel;
    const service = createFunctionsService({
      ...kernel,
      ...config.functions,
      limits: config.sandbox.limits,
      pooled: config.pool.maxPerVersion,
      readObject: objectReader(kernel.objects),
      temporaryDirectory: kernel.temporaryDir,
      maxZipBytes: config.images.maxZipBytes,
      roleEnvironment: (role) => kernel.sandboxCredentials.environment(role),
      defaultRoleArn: iam.defaultRoleArn,
      newIdSuffix: identifiers.suffix,
      newRequestId: identifiers.request,
    });
    // What a function was doing when the server ended nobody knows: its sandboxes are not taken up.
    return {
      ...service,
      sessionKind: { name: FUNCTION_SESSIONS, planOf: async () => undefined, explain: explainStart },
    };
  },
};
