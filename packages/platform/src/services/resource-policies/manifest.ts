import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 'resourcePolicies',
  load: () => import('./module.ts'),
});
