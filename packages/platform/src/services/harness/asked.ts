import { isDeepStrictEqual } from 'node:util';
import type { data } from '@agentplatform/contract';
import { refuseUnserved } from '../../kernel/served-fields.ts';
import type { RequestContext } from '../../kernel/service.ts';
import { checkLimits } from './harnesses/check-definition.ts';
import {
  DEFAULT_ITERATIONS,
  DEFAULT_WINDOW,
  type HarnessDefinition,
  type VersionOfHarness,
} from './harnesses/harness.ts';
import { INVOCATION_FIELDS } from './harnesses/harness-fields.ts';
import { checkTools, type HarnessTool } from './tools/check-tools.ts';
import type { LoopTurn } from './turns/loop-link.ts';
import type { TurnInput } from './turns/turn-input.ts';

/** What one invocation runs with: the harness's definition, with what the call says in its place. */
export type Asked = Pick<
  HarnessDefinition,
  | 'model'
  | 'systemPrompt'
  | 'tools'
  | 'allowedTools'
  | 'truncation'
  | 'maxIterations'
  | 'maxTokens'
  | 'timeoutSeconds'
  | 'executionRoleArn'
  | 'hooks'
>;

/** Rejects with what is wrong with what the call says in the place of the harness's own, and where the caller may not lend it. */
export async function askedOf(
  { definition }: VersionOfHarness,
  input: data.InvokeHarnessRequest,
  ctx: RequestContext,
): Promise<Asked> {
  refuseUnserved(input, INVOCATION_FIELDS);
  checkLimits(input);
  if (input.tools) {
    checkTools(input.tools);
    // What they do is done in the name of the harness's role: whoever adds some has as good as that role.
    if (input.tools.some((tool) => usesRole(tool) && !definition.tools?.some((own) => isDeepStrictEqual(own, tool))))
      await ctx.require('iam:PassRole', definition.executionRoleArn);
  }
  const keyArn = input.model && keyArnOf(input.model);
  // Whoever names the address and the key would have the key: the harness lends its own to nobody.
  if (keyArn !== undefined) await ctx.require('bedrock-agentcore:GetResourceApiKey', keyArn);
  const { model, systemPrompt, tools, allowedTools, maxIterations, maxTokens, timeoutSeconds } = input;
  const said = { model, systemPrompt, tools, allowedTools, maxIterations, maxTokens, timeoutSeconds };
  return { ...definition, ...Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)) };
}

function usesRole({ type, config }: HarnessTool): boolean {
  if (type === 'inline_function') return false;
  return type !== 'remote_mcp' || config?.remoteMcp?.outboundAuth?.awsIam !== undefined;
}

function keyArnOf({ openAiModelConfig, geminiModelConfig, liteLlmModelConfig }: data.HarnessModelConfiguration) {
  return (openAiModelConfig ?? geminiModelConfig ?? liteLlmModelConfig)?.apiKeyArn;
}

/** What the loop is told of a turn. `recalled` is what memory gave: not a part of the conversation, each turn has its own. */
export function loopTurn(
  { systemPrompt = [], truncation, maxIterations, maxTokens }: Asked,
  { messages, input }: TurnInput,
  { builtIns, tools, asks, recalled }: Pick<LoopTurn, 'builtIns' | 'tools' | 'asks'> & { recalled: string | undefined },
): LoopTurn {
  const texts = systemPrompt.flatMap(({ text }) => (text === undefined ? [] : [text]));
  const system = [...texts, ...(recalled === undefined ? [] : [recalled])].join('\n\n');
  return {
    system: system === '' ? undefined : system,
    ...{ messages, input, builtIns, tools, asks },
    limits: {
      turns: maxIterations ?? DEFAULT_ITERATIONS,
      ...(maxTokens === undefined ? {} : { outputTokens: maxTokens }),
    },
    truncation: truncationOf(truncation),
  };
}

/** In Strands' words. */
function truncationOf(truncation: Asked['truncation']): LoopTurn['truncation'] {
  if (truncation?.strategy === 'none') return { strategy: 'none' };
  if (truncation?.strategy !== 'summarization')
    return {
      strategy: 'sliding_window',
      config: { messagesCount: truncation?.config?.slidingWindow?.messagesCount ?? DEFAULT_WINDOW },
    };
  const { summaryRatio, preserveRecentMessages, summarizationSystemPrompt } = truncation.config?.summarization ?? {};
  return { strategy: 'summarization', config: { summaryRatio, preserveRecentMessages, summarizationSystemPrompt } };
}
