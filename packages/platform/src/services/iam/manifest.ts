import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 'iam',
  load: () => import('./module.ts'),
});
