import type { Model } from '../model.ts';
import { emitOperations } from './emit-operations.ts';
import { emitPlaneTypes, emitTypes } from './emit-types.ts';
import { printModel } from './strip-model.ts';

/** Every file of `generated/` by name, made from the model alone: the same model gives the same bytes. */
export function generate(model: Model): Record<string, string> {
  return {
    'model.json': printModel(model),
    'types.ts': emitTypes(model),
    'data-types.ts': emitPlaneTypes(model, 'data'),
    'control-types.ts': emitPlaneTypes(model, 'control'),
    'models-types.ts': emitPlaneTypes(model, 'models'),
    'operations.ts': emitOperations(model),
  };
}
