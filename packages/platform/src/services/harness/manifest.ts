import { declareService } from '../../service-module.ts';
import { harness } from './settings.ts';

export const manifest = declareService({
  name: 'harness',
  settings: { harness },
  load: () => import('./module.ts'),
});
