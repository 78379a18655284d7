import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 'audit',
  load: () => import('./module.ts'),
});
