import { declareService } from '../../service-module.ts';
import { auditErrorKinds } from './error-kinds.ts';

export const manifest = declareService({
  name: 'audit',
  errors: auditErrorKinds,
  load: () => import('./module.ts'),
});
