import { declareService } from '../../service-module.ts';
import { observability } from './settings.ts';

export const manifest = declareService({
  name: 'observability',
  settings: { observability },
  load: () => import('./module.ts'),
});
