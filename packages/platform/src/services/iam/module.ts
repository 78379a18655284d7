import type { ServiceModule } from '../../service-module.ts';
import { iamRoutes } from './iam-routes.ts';
import { sandboxCredentialsRoutes } from './sandbox-credentials-routes.ts';
import { stsRoutes } from './sts-routes.ts';

/** The APIs of users, roles and their credentials; who may do what is the kernel's (`kernel/auth/iam`). */
export const module: ServiceModule<'iam', never> = {
  create: ({ iam, sandboxCredentials }) => ({
    operations: {},
    routes: [iamRoutes(iam), stsRoutes(iam), sandboxCredentialsRoutes(sandboxCredentials)],
    port: undefined,
  }),
};
