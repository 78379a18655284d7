import { every } from '../../kernel/every.ts';
import type { ServiceModule } from '../../service-module.ts';
import { adoptAgentSecrets } from './adopt-agent-secrets.ts';
import { type SecretsPort, secretsPort } from './index.ts';
import { keyRoutes } from './key-routes.ts';
import { Keys } from './keys.ts';
import { masterKeyRoutes } from './master-key-routes.ts';
import { secretRoutes } from './secret-routes.ts';
import { StoredSecrets } from './stored-secrets.ts';

declare module '../../service-module.ts' {
  interface Ports {
    secrets: SecretsPort;
  }
}

const DELETION_MS = 3_600_000;

/** Secrets and keys by ARN: what agents and other services work with and nobody reads. */
export const module: ServiceModule<'secrets', never> = {
  async create(kernel) {
    const { clock, log, region, masterKeys, iam, lease } = kernel;
    const secrets = new StoredSecrets(kernel);
    const keys = new Keys(kernel);
    let stop = async (): Promise<void> => undefined;
    await adoptAgentSecrets(kernel);
    return {
      operations: {},
      routes: [
        secretRoutes(secrets, region),
        keyRoutes(keys),
        masterKeyRoutes({
          masterKeys,
          secrets: kernel.secrets,
          reseal: () => iam.reseal(),
          alone: () => lease.alone,
        }),
      ],
      port: secretsPort(secrets, keys),
      async start() {
        stop = every(clock, DELETION_MS, 'delete keys whose time has come', () => keys.deleteDue(), log);
      },
      stop: () => stop(),
    };
  },
};
