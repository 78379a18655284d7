import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 'identity',
  load: () => import('./module.ts'),
});
