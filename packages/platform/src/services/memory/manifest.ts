import { declareService } from '../../service-module.ts';
import { memory } from './settings.ts';

export const manifest = declareService({
  name: 'memory',
  settings: { memory },
  load: () => import('./module.ts'),
});
