import type { Json } from '../../../kernel/models/index.ts';
import { list, object, oneOf, type Shape, StoredShapeError, text } from '../../../kernel/stored-shape.ts';

export interface ToolUse {
  toolUseId: string;
  name: string;
  input: Json;
  /** By which the provider of the model knows its own call again. */
  reasoningSignature?: string;
}

export type ResultContent = { text: string } | { json: Json };

export interface ToolResult {
  toolUseId: string;
  status: 'success' | 'error';
  content: ResultContent[];
}

export interface Reasoning {
  text: string;
  signature?: string;
}

export type Block = { text: string } | { toolUse: ToolUse } | { toolResult: ToolResult } | { reasoning: Reasoning };

/** One message of a conversation, as it is stored and as the loop has it (the data format of Strands' messages). */
export interface Message {
  role: 'user' | 'assistant';
  content: Block[];
}

/** A turn that waits for its client: the model called inline functions, and nothing of the turn is in the conversation yet. */
export interface OpenTurn {
  /** The whole conversation up to the message with the calls. */
  messages: Message[];
  /** The message with the calls. */
  assistant: Message;
  /** What tools of the platform gave that were called in the same message. */
  results: ToolResult[];
}

const anyJson: Shape<Json> = (value, at) => {
  if (value === undefined) throw new StoredShapeError(at, 'JSON');
  // Whatever JSON brought.
  return value as Json;
};

const resultContent: Shape<ResultContent> = (value, at) =>
  typeof value === 'object' && value !== null && 'json' in value
    ? object({ json: anyJson })(value, at)
    : object({ text })(value, at);

export const toolResultShape: Shape<ToolResult> = object({
  toolUseId: text,
  status: oneOf('success', 'error'),
  content: list(resultContent),
});

const BLOCKS: Readonly<Record<string, Shape<Block>>> = {
  text: object({ text }),
  toolUse: object({ toolUse: object({ toolUseId: text, name: text, input: anyJson }, { reasoningSignature: text }) }),
  toolResult: object({ toolResult: toolResultShape }),
  reasoning: object({ reasoning: object({ text }, { signature: text }) }),
};

const block: Shape<Block> = (value, at) => {
  const kind = Object.keys(Object(value)).find((name) => Object.hasOwn(BLOCKS, name));
  const shape = kind === undefined ? undefined : BLOCKS[kind];
  if (!shape) throw new StoredShapeError(at, 'a block of a message');
  return shape(value, at);
};

const message: Shape<Message> = object({ role: oneOf('user', 'assistant'), content: list(block) });

/** Messages as they are stored, and as the loop sends them. */
export const messagesShape: Shape<Message[]> = list(message);

export const messageShape = message;

export const toolResultsShape: Shape<ToolResult[]> = list(toolResultShape);

export const openTurnShape: Shape<OpenTurn> = object({
  messages: messagesShape,
  assistant: message,
  results: toolResultsShape,
});

/** The calls in a message. */
export function callsIn({ content }: Message): ToolUse[] {
  return content.flatMap((one) => ('toolUse' in one ? [one.toolUse] : []));
}

/** The results in a message. */
export function resultsIn({ content }: Message): ToolResult[] {
  return content.flatMap((one) => ('toolResult' in one ? [one.toolResult] : []));
}
