import { declareService } from '../../service-module.ts';
import { functionErrors } from './error-kinds.ts';
import { functions } from './settings.ts';

export const manifest = declareService({
  name: 'functions',
  settings: { functions },
  errors: functionErrors,
  load: () => import('./module.ts'),
});
