import { declareService } from '../../service-module.ts';
import { gatewayErrors } from './error-kinds.ts';
import { gateway } from './settings.ts';

export const manifest = declareService({
  name: 'gateway',
  settings: { gateway },
  errors: gatewayErrors,
  load: () => import('./module.ts'),
});
