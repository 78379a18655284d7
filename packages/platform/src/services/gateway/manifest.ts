import { declareService } from '../../service-module.ts';
import { gateway } from './settings.ts';

export const manifest = declareService({
  name: 'gateway',
  settings: { gateway },
  load: () => import('./module.ts'),
});
