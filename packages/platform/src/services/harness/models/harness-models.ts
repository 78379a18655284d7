import { type control, type data, errors } from '@agentplatform/contract';
import { Lru } from '../../../kernel/lru.ts';
import {
  createModels,
  type Model,
  type ModelConfig,
  type ModelRequest,
  type Models,
  modelArn,
  modelFor,
  PROVIDER_URLS,
} from '../../../kernel/models/index.ts';
import type { Outbound } from '../../../kernel/outbound/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import { trimEnd } from '../../../kernel/trim-end.ts';
import type { IdentityPort } from '../../identity/index.ts';
import type { Harness } from '../harnesses/harness.ts';
import { liteLlmModel } from './lite-llm.ts';

/** A model of a harness or of one invocation: both planes of the wire have the same shape. */
export type ModelConfiguration = control.HarnessModelConfiguration | data.HarnessModelConfiguration;

export interface HarnessModelsDeps {
  /** The models that the platform's configuration names: they answer for Bedrock. */
  models: Models;
  /** The way out to addresses that users supplied. */
  outbound: Pick<Outbound, 'fetch'>;
  /** Longest that one call may take, milliseconds. */
  timeoutMs: number;
  region: string;
  identity: Pick<IdentityPort, 'credentials'>;
}

/** A model to ask, and what every request to it says. */
export interface AskedModel {
  model: Model;
  settings: Pick<ModelRequest, 'modelId' | 'maxTokens' | 'temperature' | 'topP' | 'topK'>;
  /** Tells apart who can read what models sign (reasoning, calls). */
  family: string;
}

/** Providers in memory, those that were used last. */
const KNOWN = 200;

/** What a harness names as its model, as one that can be asked. Keys come from Identity, in the name of the harness's role, and go no further. */
export class HarnessModels {
  readonly #deps: HarnessModelsDeps;
  readonly #known = new Lru<string, Model>(KNOWN);

  constructor(deps: HarnessModelsDeps) {
    this.#deps = deps;
  }

  /** Rejects with ResourceNotFoundException where there is no such model or key, AccessDeniedException, and ValidationException. */
  async find(configuration: ModelConfiguration, harness: Harness, role: Caller): Promise<AskedModel> {
    const { bedrockModelConfig, openAiModelConfig, geminiModelConfig, liteLlmModelConfig } = configuration;
    if (bedrockModelConfig) return this.#bedrock(bedrockModelConfig, role);
    if (liteLlmModelConfig?.modelId.startsWith('bedrock/')) {
      const { modelId, maxTokens, temperature, topP } = liteLlmModelConfig;
      const named = { modelId: modelId.slice('bedrock/'.length), maxTokens, temperature, topP };
      return this.#bedrock(named, role);
    }
    const given = openAiModelConfig ?? geminiModelConfig ?? liteLlmModelConfig;
    if (!given) throw errors.invalidField('model', 'must name a model');
    const place = openAiModelConfig
      ? openAiPlace(openAiModelConfig)
      : geminiModelConfig
        ? geminiPlace(geminiModelConfig)
        : liteLlmModel(given);
    const key = given.apiKeyArn === undefined ? undefined : await this.#key(given.apiKeyArn, harness, role);
    const config = { ...place, name: place.model, answersFor: [], ...(key === undefined ? {} : { key }) };
    const { maxTokens, temperature, topP } = given;
    const topK = geminiModelConfig?.topK;
    return {
      model: this.#model(config),
      settings: settingsOf({ maxTokens, temperature, topP, topK }),
      family: `${place.provider} ${place.url}`,
    };
  }

  async #bedrock(
    { modelId, maxTokens, temperature, topP }: control.HarnessBedrockModelConfig,
    role: Caller,
  ): Promise<AskedModel> {
    const { models, region } = this.#deps;
    const model = modelFor(models, modelId);
    await role.require('bedrock:InvokeModelWithResponseStream', modelArn(modelId, region));
    return { model, settings: settingsOf({ maxTokens, temperature, topP }), family: model.name };
  }

  #key(providerArn: string, { accountId, id: workload }: Harness, caller: Caller): Promise<string> {
    const bearer = { accountId, workload, user: undefined };
    return this.#deps.identity.credentials.apiKey({ providerArn, bearer, caller });
  }

  #model(config: ModelConfig): Model {
    const id = JSON.stringify(config);
    const model = this.#known.get(id) ?? createModels([config], undefined, this.#deps).default;
    if (!model) throw new Error('a model without a configuration');
    this.#known.set(id, model);
    return model;
  }
}

/** Where a model is, without its key. */
export type ModelPlace = Pick<ModelConfig, 'provider' | 'model' | 'url'>;

function openAiPlace({ modelId, apiBase, apiFormat }: control.HarnessOpenAiModelConfig): ModelPlace {
  const url = trimEnd(apiBase ?? 'https://api.openai.com/v1', '/');
  return { provider: apiFormat === 'responses' ? 'openai-responses' : 'openai', model: modelId, url };
}

function geminiPlace({ modelId }: control.HarnessGeminiModelConfig): ModelPlace {
  return { provider: 'gemini', model: modelId, url: PROVIDER_URLS.gemini ?? '' };
}

/** Without what is absent. */
function settingsOf(settings: { [Name in keyof AskedModel['settings']]: AskedModel['settings'][Name] | undefined }) {
  return Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== undefined));
}
