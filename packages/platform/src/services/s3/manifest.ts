import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 's3',
  load: () => import('./module.ts'),
});
