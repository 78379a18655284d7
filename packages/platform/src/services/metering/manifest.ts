import { declareService } from '../../service-module.ts';
import { metering } from './settings.ts';

export const manifest = declareService({
  name: 'metering',
  settings: { metering },
  load: () => import('./module.ts'),
});
