import { declareService } from '../../service-module.ts';
import { functions } from './settings.ts';

export const manifest = declareService({
  name: 'functions',
  settings: { functions },
  load: () => import('./module.ts'),
});
