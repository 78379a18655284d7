import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 'tags',
  load: () => import('./module.ts'),
});
