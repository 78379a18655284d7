import { declareService } from '../../service-module.ts';

export const manifest = declareService({
  name: 'bedrock-runtime',
  load: () => import('./module.ts'),
});
