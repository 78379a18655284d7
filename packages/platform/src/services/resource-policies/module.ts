import type { ServiceModule } from '../../service-module.ts';
import {
  createResourcePoliciesService,
  RESOURCE_POLICY_OPERATIONS,
  type ResourcePolicyOperation,
  resourcePolicyMigrations,
} from './index.ts';

/** Policies on resources. The kernel opens their store, because its gate asks them. */
export const module: ServiceModule<'resourcePolicies', ResourcePolicyOperation> = {
  operations: RESOURCE_POLICY_OPERATIONS,
  migrations: resourcePolicyMigrations,
  create: ({ resourcePolicies }) => createResourcePoliciesService(resourcePolicies),
};
