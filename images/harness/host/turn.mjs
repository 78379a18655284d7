// One turn of a conversation: Strands' loop, with the model and the tools of the platform. Nothing of it is kept here.
import {
  AfterToolCallEvent,
  Agent,
  BeforeToolCallEvent,
  ContextWindowOverflowError,
  DefaultModelRetryStrategy,
  ExponentialBackoff,
  MaxTokensError,
  Message,
  MessageAddedEvent,
  ModelMessageEvent,
  NullConversationManager,
  SlidingWindowConversationManager,
  SummarizingConversationManager,
  TextBlock,
  ToolResultBlock,
  ToolResultEvent,
} from '@strands-agents/sdk';
import { builtIns } from './built-ins.mjs';
import { messageData, PlatformModel } from './platform-model.mjs';
import { InlineFunction, PlatformTool } from './platform-tools.mjs';

/** A model that has had too many requests is asked again twice. */
const RETRIES = { maxAttempts: 3, backoff: new ExponentialBackoff({ baseMs: 500, maxMs: 5_000 }) };

/** Of one result, as of tools that the platform calls. */
const MOST_RESULT_CHARS = 250_000;

/** Runs the turn and gives what became of it, as the platform is told. Rejects with what broke it. */
export async function runTurn(turn, link, signal) {
  const { system, messages, input, limits } = turn;
  const agent = new Agent({
    model: new PlatformModel(link, 'turn'),
    messages: messages.map((message) => Message.fromMessageData(message)),
    tools: toolsOf(turn, link),
    conversationManager: truncationOf(turn, link),
    retryStrategy: new DefaultModelRetryStrategy(RETRIES),
    printer: false,
    ...(system === undefined ? {} : { systemPrompt: system }),
  });
  /** Of the message of the model that the loop works on. */
  let assistant;
  let results = [];
  agent.addHook(ModelMessageEvent, ({ message }) => {
    assistant = message;
    results = [];
  });
  agent.addHook(ToolResultEvent, ({ result }) => {
    results.push(result);
  });
  agent.addHook(MessageAddedEvent, ({ message }) => {
    const data = messageData(message);
    if (data.content.some((block) => block.toolResult) && results.length > 0)
      link.tell({ type: 'results', message: data });
  });
  agent.addHook(AfterToolCallEvent, (event) => {
    event.result = cut(event.result);
  });
  if (turn.asks) askHooks(agent, turn, link);
  const all = () => agent.messages.map(messageData);
  try {
    const { stopReason } = await agent.invoke(input, { cancelSignal: signal, limits });
    if (stopReason !== 'interrupt') return { stopReason, messages: all() };
    const done = messageData({ role: 'user', content: results.map((one) => one.toJSON()) });
    return {
      stopReason,
      messages: all(),
      assistant: messageData(assistant),
      results: done.content.map((one) => one.toolResult),
    };
  } catch (error) {
    return failed(error, all);
  }
}

/** A result that is too long for any model would stay in the conversation. */
function cut(result) {
  let left = MOST_RESULT_CHARS;
  const content = result.content.map((one) => {
    const text = one.type === 'textBlock' ? one.text : JSON.stringify(one.json ?? null);
    const kept = text.slice(0, Math.max(0, left));
    left -= kept.length;
    if (kept.length === text.length) return one;
    return new TextBlock(`${kept}\n[${text.length - kept.length} more characters are left out]`);
  });
  return new ToolResultBlock({ toolUseId: result.toolUseId, status: result.status, content });
}

/** The platform has its own word on tools that it calls itself; on the others it is asked here. */
function askHooks(agent, { tools }, link) {
  const own = new Set(tools.filter(({ inline }) => !inline).map(({ name }) => name));
  agent.addHook(BeforeToolCallEvent, async (event) => {
    const { name, toolUseId, input } = event.toolUse;
    if (own.has(name)) return;
    const { decision } = await link.askOnce({ type: 'hook', name, toolUseId, input });
    if (!decision.allowed)
      event.cancel = decision.reason ? `The call was not allowed: ${decision.reason}` : 'The call was not allowed.';
  });
  agent.addHook(AfterToolCallEvent, async ({ toolUse, tool, result }) => {
    const { name, toolUseId, input } = toolUse;
    if (own.has(name) || tool instanceof InlineFunction) return;
    const { content } = messageData({ role: 'user', content: [result.toJSON()] });
    await link.askOnce({ type: 'hook', name, toolUseId, input, result: content[0].toolResult });
  });
}

function failed(error, all) {
  if (error instanceof MaxTokensError) {
    const said = messageData(error.partialMessage);
    const calls = said.content.some((block) => block.toolUse);
    return { stopReason: 'maxTokens', ...(calls || said.content.length === 0 ? {} : { messages: [...all(), said] }) };
  }
  if (error instanceof ContextWindowOverflowError || error.kind === 'too-long')
    return { stopReason: 'modelContextWindowExceeded' };
  if (error instanceof Error && causes(error).some((one) => one instanceof SyntaxError))
    return { stopReason: 'malformedToolUse' };
  throw error;
}

function* causes(error) {
  for (let cause = error; cause instanceof Error; cause = cause.cause) yield cause;
}

function toolsOf({ builtIns: named, tools }, link) {
  return [
    ...builtIns(named),
    ...tools.map((spec) => (spec.inline ? new InlineFunction(spec) : new PlatformTool(spec, link))),
  ];
}

function truncationOf({ truncation: { strategy, config = {} } }, link) {
  if (strategy === 'none') return new NullConversationManager();
  if (strategy === 'sliding_window') return new SlidingWindowConversationManager({ windowSize: config.messagesCount });
  return new SummarizingConversationManager({ ...config, model: new PlatformModel(link, 'summary') });
}
