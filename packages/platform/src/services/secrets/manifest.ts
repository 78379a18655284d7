import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 'secrets',
  load: () => import('./module.ts'),
});
