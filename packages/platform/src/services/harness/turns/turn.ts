import { type DocumentValue, type data, errors, ServiceError } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../../kernel/clock.ts';
import { ModelError, type ModelEvent, type ModelUsage, meteredModel } from '../../../kernel/models/index.ts';
import type { Span } from '../../../kernel/telemetry/index.ts';
import type { Conversation } from '../conversations/conversation-store.ts';
import { callsIn, type ToolUse } from '../conversations/message.ts';
import type { Hooks } from '../hooks/hooks.ts';
import type { AskedModel } from '../models/harness-models.ts';
import { failure, type Given } from '../tools/tool-server.ts';
import type { TurnTools } from '../tools/turn-tools.ts';
import { AnswerForClient, metadataEvent, resultEvents, toolUseIdOf } from './client-events.ts';
import type { EventQueue } from './event-queue.ts';
import type { LoopHookCall, LoopLink, LoopModelCall, LoopToolCall } from './loop-link.ts';
import { type LoopEnd, type LoopFailed, loopMessage } from './loop-messages.ts';
import { modelRequest, sealed } from './model-request.ts';

type Event = data.InvokeHarnessStreamOutput;

/** What a turn calls on the platform. */
export interface TurnParts {
  model: AskedModel;
  tools: Pick<TurnTools, 'call' | 'originOf'>;
  hooks: Pick<Hooks, 'run'>;
  /** As the client sent them. */
  said: readonly data.HarnessMessage[];
  /** Stores what the turn made of the conversation. */
  keep(conversation: Omit<Conversation, 'revision'>): Promise<void>;
  /** What the conversation was before, as it is kept where the turn waits for its client. */
  before: Conversation;
  /** Told of what each call of the model took. */
  onUsage(model: string, usage: ModelUsage): void;
  clock: Clock;
  span: Span;
  log: Logger;
  /** Aborted when the client goes away, or the turn takes too long. */
  signal: AbortSignal;
  /** Whether that was the time. */
  timedOut(): boolean;
}

/** Stop reasons of the loop by what clients are told, and whether the turn counts. One that does not leaves the conversation as it was. */
const ENDS: Readonly<Record<string, { stopReason: data.HarnessStopReason; counts: boolean; told?: true }>> = {
  endTurn: { stopReason: 'end_turn', counts: true, told: true },
  stopSequence: { stopReason: 'stop_sequence', counts: true, told: true },
  maxTokens: { stopReason: 'max_tokens', counts: true, told: true },
  contentFiltered: { stopReason: 'content_filtered', counts: true, told: true },
  limitTurns: { stopReason: 'max_iterations_exceeded', counts: false },
  limitOutputTokens: { stopReason: 'max_output_tokens_exceeded', counts: false },
  modelContextWindowExceeded: { stopReason: 'model_context_window_exceeded', counts: false },
  malformedToolUse: { stopReason: 'malformed_tool_use', counts: false },
  cancelled: { stopReason: 'interrupted', counts: false },
};

/** One turn: relays between the loop, the model, the tools and the client, and stores the conversation once the turn counts. */
export class Turn {
  readonly #open: (ending: AbortSignal) => Promise<LoopLink>;
  readonly #parts: TurnParts;
  readonly #events: EventQueue<Event>;
  readonly #startedAt: number;
  readonly #ending = new AbortController();
  #link: LoopLink | undefined;
  #usage: ModelUsage = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 };
  /** Why the model gave no answer the last time it was asked: said where the loop gives up for it. */
  #modelFailure: unknown;
  /** A hook has stopped the turn. */
  #stopped = false;

  /** `open` begins the turn in the loop, until the signal ends it. */
  constructor(open: (ending: AbortSignal) => Promise<LoopLink>, events: EventQueue<Event>, parts: TurnParts) {
    this.#open = open;
    this.#events = events;
    this.#parts = parts;
    this.#startedAt = parts.clock.monotonic();
  }

  /** The events of the turn, for the client. Whoever stops reading ends it. */
  async *run(): AsyncGenerator<Event> {
    const relaying = this.#relay().then(
      () => this.#events.end(),
      (error: unknown) => this.#events.end({ error }),
    );
    try {
      yield* this.#events.read();
    } finally {
      this.#ending.abort(new Error('nobody reads the turn any more'));
      await relaying;
    }
  }

  async #relay(): Promise<void> {
    const calls = new Set<Promise<void>>();
    try {
      if (!(await this.#mayBegin())) return await this.#stop('hook_stopped');
      this.#link = await this.#open(this.#ending.signal);
      const last = await this.#hear(this.#link, calls);
      if (last.type === 'failed') throw this.#failed(last);
      await this.#end(last);
    } catch (error) {
      if (this.#stopped) return await this.#stop('hook_stopped');
      if (this.#parts.timedOut()) return await this.#stop('timeout_exceeded');
      throw error;
    } finally {
      this.#ending.abort(new Error('the turn is over'));
      await Promise.allSettled(calls);
    }
  }

  /** Does what the loop asks, until it says that the turn is over. */
  async #hear(link: LoopLink, calls: Set<Promise<void>>): Promise<LoopEnd | LoopFailed> {
    let last: LoopEnd | LoopFailed | undefined;
    for await (const said of link.messages()) {
      const message = loopMessage(said);
      if (message.type === 'end' || message.type === 'failed') {
        last = message;
        // The loop waits for this end before its own, so that the connection can be used again.
        link.close();
      } else if (message.type === 'results') {
        for (const event of resultEvents(message.message)) await this.#events.push(event);
      } else {
        const call = this.#answer(message).finally(() => calls.delete(call));
        calls.add(call);
      }
    }
    if (last) return last;
    throw new Error('the loop ended without a word');
  }

  #answer(message: LoopModelCall | LoopToolCall | LoopHookCall): Promise<void> {
    if (message.type === 'model') return this.#askModel(message);
    return message.type === 'tool' ? this.#callTool(message) : this.#askHooks(message);
  }

  /** What hooks say of the invocation, and of what the client's functions gave. */
  async #mayBegin(): Promise<boolean> {
    const { hooks, said, before } = this.#parts;
    // What came as JSON is a document.
    const messages = said as unknown as DocumentValue;
    if (!(await hooks.run('before_invocation', { messages })).allowed) return false;
    if (said[0]?.role !== 'assistant' || !before.open) return true;
    const calls = new Map(callsIn(before.open.assistant).map((call) => [call.toolUseId, call]));
    for (const { toolResult } of said.flatMap(({ content }) => content)) {
      const call = toolResult && calls.get(toolResult.toolUseId);
      if (!call) continue;
      const toolResultOf = toolResult.content as unknown as DocumentValue;
      const context = { ...this.#contextOf(call), toolResult: toolResultOf };
      if (!(await hooks.run('after_tool_call', context)).allowed) return false;
    }
    return true;
  }

  #contextOf({ name, toolUseId, input }: Pick<ToolUse, 'name' | 'toolUseId' | 'input'>) {
    const { type } = this.#parts.tools.originOf(name);
    return { toolName: name, toolType: type, toolUseId, toolInput: input as DocumentValue };
  }

  /** Never rejects: what goes wrong the loop is told. */
  async #askModel(call: LoopModelCall): Promise<void> {
    const { model: asked, span, onUsage } = this.#parts;
    const model = meteredModel(asked.model, (usage) => {
      this.#usage = sum(this.#usage, usage);
      onUsage(asked.model.name, usage);
    });
    const client = call.purpose === 'turn' ? new AnswerForClient(this.#parts.tools.originOf) : undefined;
    const signal = AbortSignal.any([this.#parts.signal, this.#ending.signal]);
    try {
      for await (const given of model.stream({ ...modelRequest(call, asked), span }, signal)) {
        const event = withId(given);
        for (const one of client?.take(event) ?? []) await this.#events.push(one);
        await this.#link?.send({
          call: call.call,
          event: forLoop(event, asked.family),
          ...(event.type === 'end' && { last: true }),
        });
      }
    } catch (error) {
      this.#modelFailure = error;
      const kind = error instanceof ModelError ? error.kind : 'failed';
      const message = error instanceof Error ? error.message : String(error);
      await this.#link?.send({ call: call.call, failed: { kind, message }, last: true });
    }
  }

  async #callTool(call: LoopToolCall): Promise<void> {
    const { tools, hooks } = this.#parts;
    const context = this.#contextOf(call);
    const { allowed, reason } = await hooks.run('before_tool_call', context);
    const signal = AbortSignal.any([this.#parts.signal, this.#ending.signal]);
    const result = allowed ? await tools.call(call, signal) : denied(reason);
    if (allowed) await this.#afterTool(context, result);
    await this.#link?.send({ call: call.call, result, last: true });
  }

  /** Of a tool that the loop runs itself, or hands to the client. */
  async #askHooks(call: LoopHookCall): Promise<void> {
    const { hooks } = this.#parts;
    const context = this.#contextOf(call);
    if (call.result) await this.#afterTool(context, call.result);
    const decision = call.result ? { allowed: true } : await hooks.run('before_tool_call', context);
    await this.#link?.send({ call: call.call, decision, last: true });
  }

  async #afterTool(context: Record<string, DocumentValue>, { status, content }: Given): Promise<void> {
    const said = content.flatMap((one) => ('text' in one ? [one.text] : [])).join('\n');
    const toolResult = content as DocumentValue;
    const after = { ...context, toolResult, ...(status === 'error' ? { error: said } : {}) };
    if ((await this.#parts.hooks.run('after_tool_call', after)).allowed) return;
    this.#stopped = true;
    this.#ending.abort(new Error('a hook has stopped the turn'));
  }

  async #end(end: LoopEnd): Promise<void> {
    const { keep, before, timedOut } = this.#parts;
    if (end.stopReason === 'interrupt') {
      const { assistant, messages = [], results = [] } = end;
      if (!assistant || callsIn(assistant).length === 0) throw new Error('the loop paused without a call');
      // The last event said so already: the model stopped for a tool.
      await keep({ messages: before.messages, open: { messages, assistant, results } });
      return await this.#tell('tool_use');
    }
    if (timedOut()) return await this.#stop('timeout_exceeded');
    const { stopReason, counts, told } = ENDS[end.stopReason] ?? { stopReason: 'partial_turn', counts: false };
    // A conversation with nothing in a message is one that models refuse.
    if (counts && end.messages?.at(-1)?.content.length === 0) return await this.#stop('malformed_model_output');
    if (counts && end.messages) await keep({ messages: end.messages, open: undefined });
    if (told) return await this.#tell(stopReason);
    await this.#stop(stopReason);
  }

  async #stop(stopReason: data.HarnessStopReason): Promise<void> {
    await this.#events.push({ messageStop: { stopReason } });
    await this.#tell(stopReason);
  }

  /** What comes behind the last message. */
  async #tell(stopReason: data.HarnessStopReason): Promise<void> {
    const { clock, hooks } = this.#parts;
    const { input, output } = this.#usage;
    await hooks.run('after_invocation', { stopReason, inputTokens: input, outputTokens: output });
    await this.#events.push(metadataEvent(this.#usage, clock.monotonic() - this.#startedAt));
  }

  /** What clients are told of a turn that the loop could not bring to an end. */
  #failed({ message }: LoopFailed): unknown {
    const error = this.#modelFailure;
    if (error instanceof ServiceError) return error;
    if (error instanceof ModelError) {
      const said = error.said === undefined ? '' : ` It said: ${error.said}`;
      this.#parts.log.warn({ err: error, model: this.#parts.model.model.name }, 'a model gave no answer');
      return errors.runtimeClient(
        `The model "${this.#parts.model.model.name}" gave no answer: ${error.message}.${said}`,
        {
          remedy: 'The session is as it was before; repeat the message, or name another model.',
          cause: error,
        },
      );
    }
    return errors.runtimeClient(`The turn could not be finished: ${message}`, { cause: error });
  }
}

function denied(reason: string | undefined): Given {
  return failure(reason === undefined ? 'The call was not allowed.' : `The call was not allowed: ${reason}`);
}

function withId(event: ModelEvent): ModelEvent {
  if (event.type !== 'start' || event.head.type !== 'tool-call') return event;
  return { ...event, head: { ...event.head, id: toolUseIdOf(event.head.id) } };
}

/** Signatures are kept with who can read them. */
function forLoop(event: ModelEvent, family: string): ModelEvent {
  return event.type === 'signature' ? { ...event, signature: sealed(event.signature, family) } : event;
}

function sum(one: ModelUsage, other: ModelUsage): ModelUsage {
  return {
    input: one.input + other.input,
    output: one.output + other.output,
    cacheRead: one.cacheRead + other.cacheRead,
    cacheWrite: one.cacheWrite + other.cacheWrite,
  };
}
