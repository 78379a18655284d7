import { type data, errors } from '@agentplatform/contract';
import type { Conversation } from '../conversations/conversation-store.ts';
import {
  type Block,
  callsIn,
  type Message,
  type OpenTurn,
  resultsIn,
  type ToolResult,
} from '../conversations/message.ts';

/** What the loop begins with: the conversation of before, and what is new. */
export interface TurnInput {
  messages: Message[];
  input: Message[];
}

/**
 * What an invocation's messages come to on this conversation (spec: Harness conversation turn with an inline function). Either they begin a new
 * turn, and one that was waiting for its client is given up; or they bring the assistant's calls together with their results, and the turn that
 * waits goes on. Throws ValidationException for anything else.
 */
export function turnInput(conversation: Conversation, given: readonly data.HarnessMessage[]): TurnInput {
  const messages = given.map(messageOf);
  const [first, ...rest] = messages;
  if (!first) throw errors.invalidField('messages', 'must not be empty');
  if (first.role === 'assistant') return resumed(conversation.open, first, rest);
  checkSequence(messages);
  return { messages: conversation.messages, input: messages };
}

function resumed(open: OpenTurn | undefined, assistant: Message, rest: readonly Message[]): TurnInput {
  if (!open)
    throw errors.invalidField('messages[0]', 'is of the assistant, but no turn of this session waits for results', {
      remedy: 'Begin with a message of the user.',
    });
  const [answer, ...more] = rest;
  if (answer?.role !== 'user' || more.length > 0)
    throw errors.invalidField(
      'messages',
      'must be the message of the assistant with its toolUse blocks, and one message of the user with their toolResult blocks',
      {
        remedy: 'Send both together; or begin a new turn with a message of the user.',
      },
    );
  checkCalls(open, assistant);
  const results = new Map([...open.results, ...clientResults(open, answer)].map((one) => [one.toolUseId, one]));
  const said = answer.content.filter((block) => !('toolResult' in block));
  const content: Block[] = callsIn(open.assistant).flatMap(({ toolUseId }) => {
    const toolResult = results.get(toolUseId);
    return toolResult ? [{ toolResult }] : [];
  });
  // The platform's own copy of the message counts: the client's lacks what signs it.
  return { messages: [...open.messages, open.assistant], input: [{ role: 'user', content: [...content, ...said] }] };
}

/** The client repeats the calls that it was sent, those of inline functions at least. */
function checkCalls(open: OpenTurn, assistant: Message): void {
  const made = new Map(callsIn(open.assistant).map((call) => [call.toolUseId, call]));
  const repeated = new Set<string>();
  for (const { toolUseId, name } of callsIn(assistant)) {
    const call = made.get(toolUseId);
    if (!call) throw wrong('messages[0]', `has the toolUseId ${toolUseId}, which the model did not call in this turn`);
    if (call.name !== name) throw wrong('messages[0]', `calls ${name} with the toolUseId of ${call.name}`);
    if (repeated.has(toolUseId)) throw wrong('messages[0]', `has the toolUseId ${toolUseId} twice`);
    repeated.add(toolUseId);
  }
  for (const id of waitedFor(open))
    if (!repeated.has(id)) throw wrong('messages[0]', `misses the toolUse ${id}, which waits for its result`);
}

function clientResults(open: OpenTurn, answer: Message): ToolResult[] {
  const wanted = waitedFor(open);
  const results = new Map<string, ToolResult>();
  for (const result of resultsIn(answer)) {
    const id = result.toolUseId;
    if (!wanted.has(id)) throw wrong('messages[1]', `has a toolResult for ${id}, which waits for none`);
    if (results.has(id)) throw wrong('messages[1]', `has two toolResult blocks for ${id}`);
    results.set(id, result);
  }
  for (const id of wanted) if (!results.has(id)) throw wrong('messages[1]', `misses the toolResult for ${id}`);
  return [...results.values()];
}

function waitedFor({ assistant, results }: OpenTurn): Set<string> {
  const done = new Set(results.map(({ toolUseId }) => toolUseId));
  return new Set(callsIn(assistant).flatMap(({ toolUseId }) => (done.has(toolUseId) ? [] : [toolUseId])));
}

/** A new turn may bring an exchange of before along, in which every call has its result. */
function checkSequence(messages: readonly Message[]): void {
  if (messages.at(-1)?.role !== 'user') throw wrong(`messages[${messages.length - 1}]`, 'must be of the user');
  for (const [index, message] of messages.entries()) {
    const before = messages[index - 1];
    const field = `messages[${index}]`;
    if (before?.role === message.role) throw wrong(field, 'must be of the other role than the one before it');
    const calls = before?.role === 'assistant' ? callsIn(before).map(({ toolUseId }) => toolUseId) : [];
    const results = resultsIn(message).map(({ toolUseId }) => toolUseId);
    for (const [at, id] of results.entries()) {
      if (!calls.includes(id)) throw wrong(field, `has a toolResult for ${id}, without the toolUse before it`);
      if (results.indexOf(id) !== at) throw wrong(field, `has two toolResult blocks for ${id}`);
    }
    for (const id of calls) if (!results.includes(id)) throw wrong(field, `misses the toolResult for ${id}`);
  }
}

function wrong(field: string, problem: string): Error {
  return errors.invalidField(field, problem, {
    remedy:
      'Send the toolUse blocks that the stream brought, and one toolResult for each that is of an inline function.',
  });
}

function messageOf({ role, content }: data.HarnessMessage, index: number): Message {
  const field = `messages[${index}].content`;
  if (content.length === 0) throw errors.invalidField(field, 'must not be empty');
  return { role, content: content.flatMap((block, at) => blockOf(block, role, `${field}[${at}]`)) };
}

function blockOf(block: data.HarnessContentBlock, role: Message['role'], field: string): Block[] {
  if (block.text !== undefined) return [{ text: block.text }];
  if (block.toolUse) {
    if (role !== 'assistant') throw errors.invalidField(field, 'has a toolUse, which only the assistant has');
    const { toolUseId, name, input } = block.toolUse;
    return [{ toolUse: { toolUseId, name, input } }];
  }
  if (block.toolResult) {
    if (role !== 'user') throw errors.invalidField(field, 'has a toolResult, which only the user brings');
    const { toolUseId, content, status = 'success' } = block.toolResult;
    const given = content.map(({ text, json }) => (text === undefined ? { json: json ?? null } : { text }));
    return [{ toolResult: { toolUseId, status, content: given } }];
  }
  // What a model thought is its provider's: the platform has its own copy of it.
  return [];
}
