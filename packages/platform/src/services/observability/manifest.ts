import { declareService } from '../../service-module.ts';
import { observabilityErrorKinds } from './error-kinds.ts';
import { observability } from './settings.ts';

export const manifest = declareService({
  name: 'observability',
  settings: { observability },
  errors: observabilityErrorKinds,
  load: () => import('./module.ts'),
});
