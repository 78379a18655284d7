import { type data, errors } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import type { OperationCaller, OperationCalls } from '../../kernel/http/index.ts';
import type { ModelUsage } from '../../kernel/models/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import type { Lease, SessionPlan, Sessions } from '../../kernel/sessions/index.ts';
import { type Asked, askedOf, loopTurn } from './asked.ts';
import type { Conversation, ConversationStore } from './conversations/conversation-store.ts';
import type { Message } from './conversations/message.ts';
import { DEFAULT_MODEL, DEFAULT_SECONDS, type VersionOfHarness } from './harnesses/harness.ts';
import { Hooks, type HooksDeps } from './hooks/hooks.ts';
import { actorOf, TurnMemory } from './memory/turn-memory.ts';
import type { HarnessModels } from './models/harness-models.ts';
import { HarnessRole, type HarnessRoleDeps } from './tools/harness-role.ts';
import type { ToolServers } from './tools/tool-servers.ts';
import { turnTools } from './tools/turn-tools.ts';
import { EventQueue } from './turns/event-queue.ts';
import { LoopLink } from './turns/loop-link.ts';
import { Turn } from './turns/turn.ts';
import { type TurnInput, turnInput } from './turns/turn-input.ts';

export interface InvokeHarnessDeps {
  sessions: Sessions;
  conversations: ConversationStore;
  models: HarnessModels;
  servers: ToolServers;
  hooks: HooksDeps;
  calls: Pick<OperationCalls, 'call'>;
  /** What roles are asked by. */
  roles: HarnessRoleDeps;
  planFor(version: VersionOfHarness): Promise<SessionPlan>;
  /** Told of what calls of models took. */
  onUsage(model: string, usage: ModelUsage): void;
  clock: Clock;
}

type Event = data.InvokeHarnessStreamOutput;

/** One invocation: who asks what of which version. */
interface Invocation {
  version: VersionOfHarness;
  asked: Asked;
  input: data.InvokeHarnessRequest;
  ctx: RequestContext;
  role: HarnessRole;
}

/** Events that wait for a slow client. */
const MOST_WAITING = 64;

/** Invocations of harnesses. A session has one at a time, so that each turn follows the one before it. */
export class HarnessInvocations {
  readonly #deps: InvokeHarnessDeps;
  readonly #busy = new Set<string>();

  constructor(deps: InvokeHarnessDeps) {
    this.#deps = deps;
  }

  /** InvokeHarness. What can be refused is refused before the stream begins. */
  async invoke(
    version: VersionOfHarness,
    input: data.InvokeHarnessRequest,
    ctx: RequestContext,
  ): Promise<AsyncIterable<Event>> {
    const { harness, memoryArn } = version;
    const asked = await askedOf(version, input, ctx);
    const given = memoryArn === undefined ? [] : [memoryArn];
    const role = new HarnessRole(harness, { roleArn: asked.executionRoleArn, given }, this.#deps.roles);
    const lease = await this.#lease(version, input.runtimeSessionId, ctx);
    const id = `${harness.arn}\n${input.runtimeSessionId}`;
    if (this.#busy.has(id)) {
      lease.release();
      throw errors.throttling(`The session ${input.runtimeSessionId} has an invocation under way.`, {
        remedy: 'Wait for its end, or use another session.',
        retryAfterSeconds: 1,
      });
    }
    this.#busy.add(id);
    const done = once(() => {
      this.#busy.delete(id);
      lease.release();
    });
    // A client that goes away before it reads ends nothing by itself.
    ctx.onGone(done);
    try {
      return released(await this.#begin({ version, asked, input, ctx, role }, lease), done);
    } catch (error) {
      done();
      throw error;
    }
  }

  async #begin(invocation: Invocation, lease: Lease): Promise<AsyncIterable<Event>> {
    const { conversations, models, servers } = this.#deps;
    const { version, asked, input, ctx, role } = invocation;
    const { harness } = version;
    const before = await conversations.load({ harnessArn: harness.arn, sessionId: input.runtimeSessionId });
    const messages = turnInput(before, input.messages);
    const model = await models.find(asked.model ?? DEFAULT_MODEL, harness, role.caller);
    const time = AbortSignal.timeout((asked.timeoutSeconds ?? DEFAULT_SECONDS) * 1000);
    const signal = AbortSignal.any([ctx.signal, time]);
    const events = new EventQueue<Event>(MOST_WAITING);
    const hooks = this.#hooks(invocation, signal, events);
    const memory = await this.#memory(invocation);
    const said = userText(before, messages);
    const [recalled, open] = await Promise.all([
      memory?.recall(said),
      servers.open(asked.tools ?? [], { harness, role, sessionId: input.runtimeSessionId, ctx }, signal),
    ]);
    const close = (): void => {
      for (const server of open) void server.close();
    };
    const tools = turnTools(asked.tools ?? [], open, asked.allowedTools);
    const asks = hooks.has('before_tool_call', 'after_tool_call');
    const turn = loopTurn(asked, messages, { ...tools, asks, recalled });
    const turnParts = {
      ...{ model, before, tools, hooks, signal, span: ctx.span, log: ctx.log, said: input.messages },
      ...{ clock: this.#deps.clock, onUsage: this.#deps.onUsage },
      keep: async (conversation: Omit<Conversation, 'revision'>): Promise<void> => {
        const key = { harnessArn: harness.arn, sessionId: input.runtimeSessionId };
        await conversations.save(key, { ...conversation, revision: before.revision });
        if (!conversation.open) await memory?.store(said, textOf(conversation.messages.slice(-1)));
      },
      timedOut: () => time.aborted,
    };
    const begin = (ending: AbortSignal): Promise<LoopLink> =>
      LoopLink.open(lease.connection, turn, AbortSignal.any([signal, ending])).catch(refused);
    return released(new Turn(begin, events, turnParts).run(), close);
  }

  #hooks({ version, asked, input, ctx, role }: Invocation, signal: AbortSignal, events: EventQueue<Event>): Hooks {
    return new Hooks(
      {
        ...{ hooks: asked.hooks ?? [], harnessArn: version.harness.arn, sessionId: input.runtimeSessionId },
        ...{ caller: role.caller, signal, log: ctx.log, emit: (event) => events.push(event) },
      },
      this.#deps.hooks,
    );
  }

  async #memory({ version, input, ctx, role }: Invocation): Promise<TurnMemory | undefined> {
    const { calls, clock } = this.#deps;
    const { memoryArn, definition, harness } = version;
    if (memoryArn === undefined) return undefined;
    const { requestId, sourceIp, signal, span, principal } = ctx;
    const request = { ...{ requestId, sourceIp, signal, span }, headers: {}, origin: '' };
    const caller: OperationCaller = { principal: await role.principal(), request };
    const actorId = actorOf(input.actorId, definition, principal);
    const of = { memoryArn, definition, actorId, sessionId: input.runtimeSessionId, caller };
    return new TurnMemory(of, { calls, clock, log: ctx.log.child({ harness: harness.id }) });
  }

  async #lease(version: VersionOfHarness, sessionId: string, ctx: RequestContext): Promise<Lease> {
    const { sessions, planFor } = this.#deps;
    const key = { accountId: version.harness.accountId, resourceArn: version.harness.arn, sessionId };
    return sessions.tryAcquire(key) ?? sessions.acquire(key, () => planFor(version), ctx.signal, ctx.span);
  }
}

function refused(error: unknown): never {
  const why = error instanceof Error ? error.message : String(error);
  throw errors.runtimeClient(`The session did not take the turn: ${why}`, { cause: error });
}

/** What the user said in the turn, in this invocation and in those that it has waited for. */
function userText({ messages: before }: Conversation, { messages, input }: TurnInput): string {
  return textOf([...messages.slice(before.length), ...input].filter(({ role }) => role === 'user'));
}

function textOf(messages: readonly Message[]): string {
  return messages
    .flatMap(({ content }) => content.flatMap((block) => ('text' in block ? [block.text] : [])))
    .join('\n\n');
}

function once(run: () => void): () => void {
  let ran = false;
  return () => {
    if (!ran) run();
    ran = true;
  };
}

async function* released<Item>(items: AsyncIterable<Item>, done: () => void): AsyncGenerator<Item> {
  try {
    yield* items;
  } finally {
    done();
  }
}
