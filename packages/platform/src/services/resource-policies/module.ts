import type { ServiceModule } from '../../service-module.ts';
import { createResourcePoliciesService, type ResourcePolicyOperation, resourcePolicyMigrations } from './index.ts';

/** Policies on resources. The kernel opens their store, because its gate asks them. */
export const module: ServiceModule<'resourcePolicies', ResourcePolicyOperation> = {
  migrations: resourcePolicyMigrations,
  create: ({ resourcePolicies }) => createResourcePoliciesService(resourcePolicies),
};
