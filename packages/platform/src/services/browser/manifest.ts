import { declareService } from '../../service-module.ts';
import { browser } from './settings.ts';

export const manifest = declareService({
  name: 'browser',
  settings: { browser },
  load: () => import('./module.ts'),
});
