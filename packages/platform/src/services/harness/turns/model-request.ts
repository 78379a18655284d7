import type { AnswerPart, ModelMessage, ModelRequest, UserPart } from '../../../kernel/models/index.ts';
import type { Block, Message } from '../conversations/message.ts';
import type { AskedModel } from '../models/harness-models.ts';
import type { LoopModelCall } from './loop-link.ts';

/** What stands between the family of models that signed and what it signed. No family has it in its name. */
const SEAL = '\n';

/** A signature with who can read it. */
export function sealed(signature: string, family: string): string {
  return `${family}${SEAL}${signature}`;
}

/** The signature where this family made it; a conversation may have gone from one provider to another. */
function opened(signature: string | undefined, family: string): string | undefined {
  return signature?.startsWith(`${family}${SEAL}`) ? signature.slice(family.length + SEAL.length) : undefined;
}

/** What a model is asked by a call of the loop. */
export function modelRequest(
  { messages, system, tools }: LoopModelCall,
  { settings, family }: AskedModel,
): ModelRequest {
  return {
    ...settings,
    ...(system === undefined || system === '' ? {} : { system }),
    messages: messages.map((message) => modelMessage(message, family)),
    ...(tools.length === 0
      ? {}
      : { tools: tools.map(({ name, description, inputSchema }) => ({ name, description, schema: inputSchema })) }),
  };
}

function modelMessage({ role, content }: Message, family: string): ModelMessage {
  if (role === 'assistant') return { role, content: content.flatMap((block) => answerPart(block, family)) };
  return { role, content: content.flatMap(userPart) };
}

/** What another provider's model thought is left out: this one cannot read it, and some refuse it. */
function answerPart(block: Block, family: string): AnswerPart[] {
  if ('text' in block) return [{ type: 'text', text: block.text }];
  if ('toolUse' in block) {
    const { toolUseId: id, name, input, reasoningSignature } = block.toolUse;
    const signature = opened(reasoningSignature, family);
    return [{ type: 'tool-call', id, name, input, ...(signature === undefined ? {} : { signature }) }];
  }
  if (!('reasoning' in block)) return [];
  const signature = opened(block.reasoning.signature, family);
  return signature === undefined ? [] : [{ type: 'reasoning', text: block.reasoning.text, signature }];
}

function userPart(block: Block): UserPart[] {
  if ('text' in block) return [{ type: 'text', text: block.text }];
  if (!('toolResult' in block)) return [];
  const { toolUseId: id, status, content } = block.toolResult;
  const parts = content.map((one) =>
    'text' in one ? ({ type: 'text', text: one.text } as const) : ({ type: 'json', value: one.json } as const),
  );
  return [{ type: 'tool-result', id, content: parts, ...(status === 'error' ? { failed: true } : {}) }];
}
