import type { InferenceTargetConfiguration } from '@aws-sdk/client-bedrock-agentcore-control';
import { CliError } from '../cli-error.ts';

/** Vendors by their short names: a connector of the platform, and what is said where models are named. */
export const VENDORS: Readonly<Record<string, { endpoint: string; path: string; connectorId?: string }>> = {
  openai: { endpoint: 'https://api.openai.com', path: '/v1/chat/completions', connectorId: 'openai' },
  anthropic: { endpoint: 'https://api.anthropic.com', path: '/v1/messages', connectorId: 'anthropic' },
  gemini: { endpoint: 'https://generativelanguage.googleapis.com', path: '/v1beta/models' },
  mistral: { endpoint: 'https://api.mistral.ai', path: '/v1/chat/completions' },
};

/** What servers of models speak, and the paths that say so. */
const PATHS = {
  openai: '/v1/chat/completions',
  'openai-responses': '/v1/responses',
  anthropic: '/v1/messages',
  gemini: '/v1beta/models',
  bedrock: '/model/{modelId}/converse',
} as const;
export const FORMATS = ['openai', 'openai-responses', 'anthropic', 'gemini', 'bedrock'] as const;

export interface ModelFlags {
  models?: string;
  model?: string[];
  format?: (typeof FORMATS)[number];
}

/** The target that `--models` asks for; undefined without it. Throws a `CliError` (usage). */
export function inferenceTarget({ models, model, format }: ModelFlags): InferenceTargetConfiguration | undefined {
  if (models === undefined) {
    if (model || format) throw new CliError('usage', '--model and --format need --models.');
    return undefined;
  }
  const vendor = Object.hasOwn(VENDORS, models) ? VENDORS[models] : undefined;
  if (vendor && format) throw new CliError('usage', `The format of ${models} is known. Leave --format out.`);
  if (vendor?.connectorId !== undefined && !model)
    return { connector: { source: { connectorId: vendor.connectorId } } };
  if (!vendor && !/^https?:\/\//.test(models))
    throw new CliError(
      'usage',
      `"${models}" is not a provider of models.`,
      `Write ${Object.keys(VENDORS).join(', ')}, or an address such as http://10.0.0.5:8000/v1.`,
    );
  const path = vendor?.path ?? PATHS[format ?? 'openai'];
  const named = model && { models: model.map((id) => ({ model: id })) };
  // Vectors are made at a path of their own.
  const paths = path === PATHS.openai ? [path, '/v1/embeddings'] : [path];
  const operations = paths.map((one) => ({ path: one, ...named }));
  return { provider: { endpoint: vendor?.endpoint ?? models, operations } };
}
