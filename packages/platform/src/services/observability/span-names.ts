import type { Attributes, AttributeValue } from './otlp/index.ts';

/** Version of the table below; each stored span says which one it was read by. */
export const NAMES_VERSION = 1;

/** What the platform asks of spans, whoever made them. */
export interface Meaning {
  /** `invoke_agent`, `chat`, `execute_tool`, `embeddings`, `retrieval` of OpenTelemetry's GenAI conventions; empty for any other work. */
  operation: string;
  agentName: string;
  sessionId: string;
  userId: string;
  model: string;
  tool: string;
  inputTokens: number;
  outputTokens: number;
  /** What went in and came out, as text. */
  input: string;
  output: string;
}

/** Spellings of one thing, the preferred first: OpenTelemetry's GenAI conventions (`gen_ai.*`, also of older versions), OpenInference, OpenLLMetry, Strands, and the vendor's SDK. */
const SPELLINGS: Record<keyof Meaning, readonly string[]> = {
  operation: [
    'gen_ai.operation.name',
    'openinference.span.kind',
    'traceloop.span.kind',
    'llm.request.type',
    'ai.operationId',
  ],
  agentName: ['gen_ai.agent.name', 'agent.name', 'traceloop.entity.name', 'graph.node.id'],
  sessionId: [
    'session.id',
    'gen_ai.conversation.id',
    'aws.bedrock.agentcore.session.id',
    'traceloop.association.properties.session_id',
    'ai.telemetry.metadata.sessionId',
  ],
  userId: ['user.id', 'enduser.id', 'traceloop.association.properties.user_id', 'ai.telemetry.metadata.userId'],
  model: ['gen_ai.request.model', 'gen_ai.response.model', 'llm.model_name', 'embedding.model_name', 'ai.model.id'],
  tool: ['gen_ai.tool.name', 'tool.name', 'tool_call.function.name', 'ai.toolCall.name'],
  inputTokens: [
    'gen_ai.usage.input_tokens',
    'gen_ai.usage.prompt_tokens',
    'llm.token_count.prompt',
    'llm.usage.prompt_tokens',
    'ai.usage.promptTokens',
    'ai.usage.inputTokens',
  ],
  outputTokens: [
    'gen_ai.usage.output_tokens',
    'gen_ai.usage.completion_tokens',
    'llm.token_count.completion',
    'llm.usage.completion_tokens',
    'ai.usage.completionTokens',
    'ai.usage.outputTokens',
  ],
  input: [
    'gen_ai.input.messages',
    'gen_ai.prompt',
    'input.value',
    'traceloop.entity.input',
    'gen_ai.tool.call.arguments',
    'ai.prompt.messages',
    'ai.prompt',
    'ai.toolCall.args',
  ],
  output: [
    'gen_ai.output.messages',
    'gen_ai.completion',
    'output.value',
    'traceloop.entity.output',
    'gen_ai.tool.call.result',
    'ai.response.text',
    'ai.toolCall.result',
  ],
};

/** Words of other conventions for operations of OpenTelemetry's. */
const OPERATIONS: Readonly<Record<string, string>> = {
  agent: 'invoke_agent',
  workflow: 'invoke_agent',
  llm: 'chat',
  chat: 'chat',
  completion: 'chat',
  text_completion: 'chat',
  generate_content: 'chat',
  tool: 'execute_tool',
  embedding: 'embeddings',
  retriever: 'retrieval',
  'ai.generatetext': 'invoke_agent',
  'ai.streamtext': 'invoke_agent',
  'ai.generatetext.dogenerate': 'chat',
  'ai.streamtext.dostream': 'chat',
  'ai.toolcall': 'execute_tool',
};

/** Attributes that hold content: left out, or blanked, where a runtime's content is not captured. */
export const CONTENT_NAMES =
  /^(gen_ai\.(input|output)\.messages|gen_ai\.(system_instructions|prompt|completion|tool\.call\.(arguments|result)|tool\.message|choice|event\.content)|input\.value|output\.value|llm\.(input|output)_messages|traceloop\.entity\.(input|output)|ai\.(prompt|response|toolCall)\.|message$|body$|content$)/;

/** Reads what a span means by the table. */
export function meaningOf(attributes: Attributes): Meaning {
  const said = (of: keyof Meaning): AttributeValue | undefined => {
    const name = SPELLINGS[of].find((one) => attributes[one] !== undefined && attributes[one] !== null);
    return name === undefined ? undefined : attributes[name];
  };
  const text = (of: keyof Meaning): string => textOf(said(of));
  const operation = text('operation').toLowerCase();
  return {
    operation: OPERATIONS[operation] ?? operation,
    ...{ agentName: text('agentName'), sessionId: text('sessionId'), userId: text('userId') },
    ...{ model: text('model'), tool: text('tool'), input: text('input'), output: text('output') },
    inputTokens: wholeOf(said('inputTokens')),
    outputTokens: wholeOf(said('outputTokens')),
  };
}

function textOf(value: AttributeValue | undefined): string {
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function wholeOf(value: AttributeValue | undefined): number {
  const number = Math.round(Number(value ?? 0));
  return Number.isSafeInteger(number) && number > 0 ? number : 0;
}
