import type { control } from '@agentplatform/contract';
import type { ClientApi, Provider } from '../../../kernel/models/index.ts';
import { trimEnd } from '../../../kernel/trim-end.ts';
import type { TargetDefinition } from '../targets/target.ts';

/** What a target of models is, whether its owner says so or its connector. */
export type ProviderConfiguration = control.InferenceProviderTargetConfiguration;

type Operation = control.InferenceOperationConfiguration;

/** The connectors: what an owner would say who says all himself. */
const CONNECTORS: Readonly<Record<string, (region: string) => ProviderConfiguration>> = {
  openai: () => ({
    endpoint: 'https://api.openai.com',
    operations: [{ path: '/v1/chat/completions' }, { path: '/v1/responses' }, { path: '/v1/embeddings' }],
  }),
  anthropic: () => ({ endpoint: 'https://api.anthropic.com', operations: [{ path: '/v1/messages' }] }),
  'bedrock-mantle': (region) => {
    const models = [{ model: 'anthropic.claude-*' }, { model: 'openai.gpt-*' }, { model: '*' }];
    return {
      endpoint: `https://bedrock-mantle.${region}.api.aws`,
      modelMapping: { providerPrefix: { strip: true, separator: '.' } },
      operations: [
        { path: '/v1/chat/completions', models },
        { path: '/v1/responses', models },
        { path: '/v1/messages', providerPath: '/anthropic/v1/messages', models },
      ],
    };
  },
};

export const CONNECTOR_IDS = Object.keys(CONNECTORS);

/** What a target says of its provider; undefined for one that is no target of models. */
export function providerOf(
  { targetConfiguration }: TargetDefinition,
  region: string,
): ProviderConfiguration | undefined {
  const { provider, connector } = targetConfiguration.inference ?? {};
  if (!connector) return provider;
  const { connectorId } = connector.source;
  return Object.hasOwn(CONNECTORS, connectorId) ? CONNECTORS[connectorId]?.(region) : undefined;
}

/** One way in which a provider is asked. */
export interface Speech {
  provider: Provider;
  /** What clients of the same format ask in. */
  api: ClientApi | undefined;
  /** Of the provider's API, as its client library wants it. */
  url: string;
  operation: Operation;
}

interface Spoken {
  provider: Provider;
  api: ClientApi | undefined;
  /** Behind the endpoint, where the paths of the API begin. */
  base: string;
}

/** Formats by the paths of their operations. */
const BY_PATH: readonly [RegExp, Spoken][] = [
  [/^\/v1\/chat\/completions$/, { provider: 'openai', api: 'chat-completions', base: '/v1' }],
  [/^\/v1\/messages$/, { provider: 'anthropic', api: 'messages', base: '/v1' }],
  [/^\/v1\/responses$/, { provider: 'openai-responses', api: 'responses', base: '/v1' }],
  [/^\/v1\/embeddings$/, { provider: 'openai', api: 'embeddings', base: '/v1' }],
  [
    /^\/model\/[^/]+\/(?:converse|converse-stream|invoke|invoke-with-response-stream)$/,
    { provider: 'bedrock', api: 'bedrock', base: '' },
  ],
  [/^\/v1beta\/models(?:\/.*)?$/, { provider: 'gemini', api: undefined, base: '/v1beta' }],
];

/** Formats by the hosts of vendors who have one, where the owner names no operations. */
const BY_HOST: readonly [RegExp, string][] = [
  [/^api\.anthropic\.com$/, '/v1/messages'],
  [/^bedrock-runtime\..*\.amazonaws\.com$/, '/model/{modelId}/converse'],
  [/^generativelanguage\.googleapis\.com$/, '/v1beta/models'],
];

/** The ways in which a provider is asked, the best to translate to first. */
export function speechesOf({ endpoint, operations }: ProviderConfiguration): Speech[] {
  const { hostname } = new URL(endpoint);
  const [, path] = BY_HOST.find(([host]) => host.test(hostname)) ?? [];
  const usual = path === undefined ? ['/v1/chat/completions', '/v1/embeddings'] : [path];
  return BY_PATH.flatMap(([pattern, { provider, api, base }]) =>
    (operations ?? usual.map((one): Operation => ({ path: one })))
      .filter((operation) => pattern.test(operation.path))
      .map((operation) => ({
        provider: provider === 'openai' && hostname === 'api.mistral.ai' ? 'mistral' : provider,
        url: rooted(trimEnd(endpoint, '/'), base),
        ...{ api, operation },
      })),
  );
}

/** An endpoint may be said with or without the beginning of its paths. */
function rooted(endpoint: string, base: string): string {
  return endpoint.endsWith(base) ? endpoint : `${endpoint}${base}`;
}

/** Whether some format has operations at that path. */
export function isSpoken(path: string): boolean {
  return BY_PATH.some(([pattern]) => pattern.test(path));
}
