import type { ServiceModule } from '../../service-module.ts';
import { createTagsService, type TagOperation } from './index.ts';

export const module: ServiceModule<'tags', TagOperation> = {
  create: createTagsService,
};
