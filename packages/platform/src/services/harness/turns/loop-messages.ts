import type { Json, JsonSchema } from '../../../kernel/models/index.ts';
import {
  list,
  number,
  object,
  oneOf,
  orAbsent,
  type Shape,
  StoredShapeError,
  text,
} from '../../../kernel/stored-shape.ts';
import {
  type Message,
  messageShape,
  messagesShape,
  type ToolResult,
  toolResultShape,
  toolResultsShape,
} from '../conversations/message.ts';
import type { LoopHookCall, LoopModelCall, LoopToolCall } from './loop-link.ts';

/** How the loop says that a turn is over. */
export interface LoopEnd {
  type: 'end';
  /** In Strands' words. */
  stopReason: string;
  /** The whole conversation as it is now; absent where nothing of the turn is to be kept. */
  messages?: Message[] | undefined;
  /** The message of the model whose inline functions wait, and what the other tools in it gave. */
  assistant?: Message | undefined;
  results?: ToolResult[] | undefined;
}

export interface LoopFailed {
  type: 'failed';
  kind?: string | undefined;
  message: string;
}

export interface LoopResults {
  type: 'results';
  message: Message;
}

export type LoopMessage = LoopModelCall | LoopToolCall | LoopHookCall | LoopResults | LoopEnd | LoopFailed;

const anything: Shape<Json> = (value) => value as Json;
const schema: Shape<JsonSchema> = (value, at) => {
  if (typeof value !== 'object' || value === null) throw new StoredShapeError(at, 'a schema');
  return value;
};

const SHAPES: { readonly [Type in LoopMessage['type']]: Shape<Extract<LoopMessage, { type: Type }>> } = {
  model: object({
    type: oneOf('model'),
    call: number,
    purpose: oneOf('turn', 'summary'),
    messages: messagesShape,
    system: orAbsent(text),
    tools: list(object({ name: text, description: text, inputSchema: schema })),
  }),
  tool: object({ type: oneOf('tool'), call: number, toolUseId: text, name: text, input: anything }),
  hook: object({
    ...{ type: oneOf('hook'), call: number, toolUseId: text, name: text, input: anything },
    result: orAbsent(toolResultShape),
  }),
  results: object({ type: oneOf('results'), message: messageShape }),
  end: object({
    ...{ type: oneOf('end'), stopReason: text, messages: orAbsent(messagesShape) },
    ...{ assistant: orAbsent(messageShape), results: orAbsent(toolResultsShape) },
  }),
  failed: object({ type: oneOf('failed'), kind: orAbsent(text), message: text }),
};

/** What the loop said. It shares its sandbox with what the model has run there, so nothing of it is believed unread. Throws `StoredShapeError`. */
export function loopMessage(said: unknown): LoopMessage {
  const { type } = Object(said) as { type?: unknown };
  const shape: Shape<LoopMessage> | undefined =
    typeof type === 'string' && Object.hasOwn(SHAPES, type) ? SHAPES[type as LoopMessage['type']] : undefined;
  if (!shape) throw new StoredShapeError('type', 'a message of the loop');
  return shape(said, '');
}
