import type { ServiceModule } from '../../service-module.ts';
import { createTagsService, TAG_OPERATIONS, type TagOperation } from './index.ts';

export const module: ServiceModule<'tags', TagOperation> = {
  operations: TAG_OPERATIONS,
  create: createTagsService,
};
