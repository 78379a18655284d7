import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 'packages',
  load: () => import('./module.ts'),
});
