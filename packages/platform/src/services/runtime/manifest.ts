import { declareService } from '../../service-module.ts';
import { invocation } from './settings.ts';

export const manifest = declareService({
  name: 'runtime',
  settings: { invocation },
  load: () => import('./module.ts'),
});
