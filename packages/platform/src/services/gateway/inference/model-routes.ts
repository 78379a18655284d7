import { errors } from '@agentplatform/contract';
import type { ClientApi, ListedModel } from '../../../kernel/models/index.ts';
import type { OpenGateway } from '../gateway-tools.ts';
import type { LiveTarget } from '../targets/target.ts';
import { idAtProvider, shownId } from './model-names.ts';
import { providerOf, type Speech, speechesOf } from './providers.ts';

/** The destination of a request for a model. */
export interface ModelRoute {
  target: LiveTarget;
  /** Its id at the provider. */
  modelId: string;
  speech: Speech;
}

/** Finds the target for a model by its id, as AgentCore does. `target/model` names the target. Otherwise targets of Bedrock are preferred, and equal targets take turns. */
export class ModelRoutes {
  readonly #region: string;
  #turn = 0;

  constructor(region: string) {
    this.#region = region;
  }

  /** Throws ResourceNotFoundException where no target has the model. */
  find({ targets, gateway }: OpenGateway, asked: string, api: ClientApi): ModelRoute {
    const slash = asked.indexOf('/');
    const named = targets.find((target) => slash > 0 && target.name === asked.slice(0, slash));
    const own = named && this.#routeTo(named, asked.slice(slash + 1), api);
    const found = own ? [own] : targets.flatMap((target) => this.#routeTo(target, asked, api) ?? []);
    const ofBedrock = found.filter(isOfBedrock);
    const choice = ofBedrock.length > 0 ? ofBedrock : found;
    const route = choice[this.#turn++ % Math.max(1, choice.length)];
    if (route) return route;
    throw errors.resourceNotFound(`No target of the gateway ${gateway.id} has the model ${asked.slice(0, 256)}.`, {
      remedy: 'GET /inference/v1/models lists those that targets name.',
    });
  }

  /** The way to a model at one target, as a rule says. Throws ResourceNotFoundException where that target has no such model. */
  at({ targets, gateway }: OpenGateway, targetName: string, asked: string, api: ClientApi): ModelRoute {
    const target = targets.find(({ name }) => name === targetName);
    const [word = '', ...rest] = asked.split('/');
    const ids = targets.some(({ name }) => name === word) ? [rest.join('/'), asked] : [asked];
    for (const id of ids) {
      const route = target && id !== '' ? this.#routeTo(target, id, api) : undefined;
      if (route) return route;
    }
    throw errors.resourceNotFound(
      `The target ${targetName} of the gateway ${gateway.id} does not have the model ${asked.slice(0, 256)}, or is not asked for it this way.`,
      { remedy: 'A rule sends the request there: its route can name another model.' },
    );
  }

  /** The models that targets name, each once. Patterns name none. */
  list({ targets }: OpenGateway): ListedModel[] {
    const listed = new Map<string, ListedModel>();
    for (const { name: ownedBy, live, createdAt } of targets) {
      const provider = providerOf(live, this.#region);
      for (const { model } of (provider?.operations ?? []).flatMap(({ models = [] }) => models)) {
        const id = shownId(model, provider?.modelMapping);
        if (id !== undefined && !listed.has(id)) listed.set(id, { id, ownedBy, createdAt });
      }
    }
    return [...listed.values()];
  }

  #routeTo(target: LiveTarget, asked: string, api: ClientApi): ModelRoute | undefined {
    const provider = providerOf(target.live, this.#region);
    if (!provider) return undefined;
    const fit = speechesOf(provider).filter(
      (speech) => (speech.api === 'embeddings') === (api === 'embeddings') || embeds(speech, api),
    );
    // The client's own format first, for nothing is lost then.
    for (const speech of fit.toSorted((a, b) => Number(b.api === api) - Number(a.api === api))) {
      const patterns = speech.operation.models ?? [{ model: '*' }];
      for (const { model } of patterns) {
        const modelId = idAtProvider(asked, model, provider.modelMapping);
        if (modelId !== undefined) return { target, modelId, speech };
      }
    }
    return undefined;
  }
}

/** These make vectors without an operation of their own. */
function embeds({ provider }: Speech, api: ClientApi): boolean {
  return api === 'embeddings' && (provider === 'bedrock' || provider === 'gemini');
}

function isOfBedrock({ speech, target }: ModelRoute): boolean {
  const { connector } = target.live.targetConfiguration.inference ?? {};
  return speech.provider === 'bedrock' || connector?.source.connectorId === 'bedrock-mantle';
}
