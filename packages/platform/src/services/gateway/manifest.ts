import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 'gateway',
  load: () => import('./module.ts'),
});
