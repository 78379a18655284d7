import type { Model } from './model.ts';
import type { ModelConfig } from './model-config.ts';
import { createProviderModel, type ProviderModelDeps } from './provider-model.ts';
import { tracedModel } from './traced-model.ts';

/** The models that the configuration names. */
export interface Models {
  /** The one for whoever names none. */
  default: Model | undefined;
  /** The model of this name, or the first that answers for this id; undefined when there is none. */
  find(id: string): Model | undefined;
}

/** Makes the models of a configuration, none of which is called or loaded before it is used. `chosen` is the name of the default, otherwise the first. */
export function createModels(
  configs: readonly ModelConfig[],
  chosen: string | undefined,
  deps: ProviderModelDeps,
): Models {
  const all = configs.map((config) => ({
    model: tracedModel(createProviderModel(config, deps), config.provider),
    answersFor: config.answersFor.map(matcher),
  }));
  const named = (name: string) => all.find(({ model }) => model.name === name)?.model;
  return {
    default: chosen === undefined ? all[0]?.model : named(chosen),
    find: (id) => named(id) ?? all.find(({ answersFor }) => answersFor.some((matches) => matches(id)))?.model,
  };
}

/** Whether an id is as the pattern says; in the product of both lengths at worst. */
function matcher(pattern: string): (id: string) => boolean {
  const [first = '', ...rest] = pattern.split('*');
  const last = rest.pop();
  if (last === undefined) return (id) => id === pattern;
  return (id) => {
    if (!id.startsWith(first) || !id.endsWith(last)) return false;
    let at = first.length;
    for (const piece of rest) {
      const found = id.indexOf(piece, at);
      if (found < 0) return false;
      at = found + piece.length;
    }
    return at <= id.length - last.length;
  };
}
