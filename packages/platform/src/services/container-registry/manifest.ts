import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 'container-registry',
  load: () => import('./module.ts'),
});
