import { type data, errors } from '@agentplatform/contract';
import type { Iam } from '../../kernel/auth/index.ts';
import type { Clock } from '../../kernel/clock.ts';
import type { ModelUsage } from '../../kernel/models/index.ts';
import { refuseUnserved } from '../../kernel/served-fields.ts';
import type { Caller, RequestContext } from '../../kernel/service.ts';
import type { Lease, SessionPlan, Sessions } from '../../kernel/sessions/index.ts';
import type { ConversationStore } from './conversations/conversation-store.ts';
import { checkLimits } from './harnesses/check-definition.ts';
import {
  DEFAULT_ITERATIONS,
  DEFAULT_MODEL,
  DEFAULT_SECONDS,
  DEFAULT_WINDOW,
  type Harness,
  type HarnessDefinition,
  type VersionOfHarness,
} from './harnesses/harness.ts';
import { INVOCATION_FIELDS } from './harnesses/harness-fields.ts';
import type { HarnessModels } from './models/harness-models.ts';
import { checkTools } from './tools/check-tools.ts';
import { turnTools } from './tools/turn-tools.ts';
import { LoopLink, type LoopTurn } from './turns/loop-link.ts';
import { Turn } from './turns/turn.ts';
import { type TurnInput, turnInput } from './turns/turn-input.ts';

export interface InvokeHarnessDeps {
  sessions: Sessions;
  conversations: ConversationStore;
  models: HarnessModels;
  planFor(version: VersionOfHarness): Promise<SessionPlan>;
  roleMay: Iam['roleMay'];
  /** Told of what calls of models took. */
  onUsage(model: string, usage: ModelUsage): void;
  clock: Clock;
}

/** What one invocation runs with: the harness's definition, with what the call says in its place. */
type Asked = Pick<
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
>;

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
  ): Promise<AsyncIterable<data.InvokeHarnessStreamOutput>> {
    const { harness } = version;
    const asked = await askedOf(version, input, ctx);
    const key = { accountId: harness.accountId, resourceArn: harness.arn, sessionId: input.runtimeSessionId };
    const lease = await this.#lease(version, key.sessionId, ctx);
    const id = `${key.resourceArn}\n${key.sessionId}`;
    if (this.#busy.has(id)) {
      lease.release();
      throw errors.throttling(`The session ${key.sessionId} has an invocation under way.`, {
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
      return released(await this.#begin(version, asked, lease, input, ctx), done);
    } catch (error) {
      done();
      throw error;
    }
  }

  async #begin(
    { harness }: VersionOfHarness,
    asked: Asked,
    lease: Lease,
    input: data.InvokeHarnessRequest,
    ctx: RequestContext,
  ): Promise<AsyncIterable<data.InvokeHarnessStreamOutput>> {
    const { conversations, models, clock, onUsage } = this.#deps;
    const key = { harnessArn: harness.arn, sessionId: input.runtimeSessionId };
    const before = await conversations.load(key);
    const messages = turnInput(before, input.messages);
    const model = await models.find(
      asked.model ?? DEFAULT_MODEL,
      harness,
      this.#roleOf(harness, asked.executionRoleArn),
    );
    const tools = turnTools(asked.tools ?? [], asked.allowedTools);
    const time = AbortSignal.timeout((asked.timeoutSeconds ?? DEFAULT_SECONDS) * 1000);
    const signal = AbortSignal.any([ctx.signal, time]);
    const turn = loopTurn(asked, messages, tools);
    const link = await LoopLink.open(lease.connection, turn, signal).catch((error: unknown) => {
      throw errors.runtimeClient(
        `The session did not take the turn: ${error instanceof Error ? error.message : error}`,
        {
          cause: error,
        },
      );
    });
    return new Turn(link, {
      ...{ model, before, onUsage, clock, signal, span: ctx.span, log: ctx.log },
      originOf: tools.originOf,
      callTool: (call, until) => tools.call(call, until),
      keep: (conversation) => conversations.save(key, { ...conversation, revision: before.revision }),
      timedOut: () => time.aborted,
    }).run();
  }

  async #lease(version: VersionOfHarness, sessionId: string, ctx: RequestContext): Promise<Lease> {
    const { sessions, planFor } = this.#deps;
    const key = { accountId: version.harness.accountId, resourceArn: version.harness.arn, sessionId };
    return sessions.tryAcquire(key) ?? sessions.acquire(key, () => planFor(version), ctx.signal, ctx.span);
  }

  /** The harness's role as a caller: what a harness uses elsewhere, it uses in its name. */
  #roleOf({ accountId }: Harness, roleArn: string): Caller {
    return {
      accountId,
      require: async (action, resource) => {
        if (this.#deps.roleMay(roleArn, action, resource)) return;
        throw errors.accessDenied(`The execution role of the harness, ${roleArn}, may not ${action} on ${resource}.`, {
          remedy: 'Give the role a policy that allows it: agentcore iam put-policy.',
        });
      },
    };
  }
}

/** Rejects with what is wrong with what the call says in the place of the harness's own. */
async function askedOf(
  { definition }: VersionOfHarness,
  input: data.InvokeHarnessRequest,
  ctx: RequestContext,
): Promise<Asked> {
  refuseUnserved(input, INVOCATION_FIELDS);
  checkLimits(input);
  if (input.tools) checkTools(input.tools);
  const keyArn = input.model && keyArnOf(input.model);
  // Whoever names the address and the key would have the key: the harness lends its own to nobody.
  if (keyArn !== undefined) await ctx.require('bedrock-agentcore:GetResourceApiKey', keyArn);
  const { model, systemPrompt, tools, allowedTools, maxIterations, maxTokens, timeoutSeconds } = input;
  const said = { model, systemPrompt, tools, allowedTools, maxIterations, maxTokens, timeoutSeconds };
  return { ...definition, ...Object.fromEntries(Object.entries(said).filter(([, value]) => value !== undefined)) };
}

function keyArnOf({ openAiModelConfig, geminiModelConfig, liteLlmModelConfig }: data.HarnessModelConfiguration) {
  return (openAiModelConfig ?? geminiModelConfig ?? liteLlmModelConfig)?.apiKeyArn;
}

function loopTurn(
  { systemPrompt = [], truncation, maxIterations, maxTokens }: Asked,
  { messages, input }: TurnInput,
  { builtIns, tools }: Pick<LoopTurn, 'builtIns' | 'tools'>,
): LoopTurn {
  const system = systemPrompt.flatMap(({ text }) => (text === undefined ? [] : [text])).join('\n\n');
  return {
    system: system === '' ? undefined : system,
    ...{ messages, input, builtIns, tools },
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
  const config = {
    ...{ summaryRatio, summarizationSystemPrompt },
    preserveRecentMessages,
  };
  return { strategy: 'summarization', config };
}

function once(run: () => void): () => void {
  let ran = false;
  return () => {
    if (!ran) run();
    ran = true;
  };
}

async function* released<Event>(events: AsyncIterable<Event>, done: () => void): AsyncGenerator<Event> {
  try {
    yield* events;
  } finally {
    done();
  }
}
