import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 'administration',
  load: () => import('./module.ts'),
});
