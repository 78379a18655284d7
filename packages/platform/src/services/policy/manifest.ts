import { declareService } from '../../service-module.ts';
import { policy } from './settings.ts';

export const manifest = declareService({
  name: 'policy',
  settings: { policy },
  load: () => import('./module.ts'),
});
