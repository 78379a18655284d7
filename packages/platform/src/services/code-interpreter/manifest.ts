import { declareService } from '../../service-module.ts';
import { codeInterpreter } from './settings.ts';

export const manifest = declareService({
  name: 'codeInterpreter',
  settings: { codeInterpreter },
  load: () => import('./module.ts'),
});
