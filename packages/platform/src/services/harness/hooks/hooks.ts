import { type control, type DocumentValue, type data, errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Topics } from '../../../kernel/notifications/index.ts';
import type { Caller } from '../../../kernel/service.ts';
import type { FunctionCaller } from '../../functions/index.ts';

type HookType = data.HarnessHookEventType;

export interface HooksDeps {
  functions: FunctionCaller;
  topics: Topics;
  /** 36 characters, unique. */
  newUuid(): string;
}

/** Whose hooks run. */
export interface HooksOf {
  hooks: readonly control.HarnessHook[];
  harnessArn: string;
  sessionId: string;
  /** The harness's role: functions are called in its name. */
  caller: Caller;
  signal: AbortSignal;
  log: Logger;
  /** Tells the client. */
  emit(event: data.InvokeHarnessStreamOutput): Promise<void>;
}

/** What the hooks of one event came to. */
export interface Decision {
  allowed: boolean;
  reason?: string | undefined;
}

const ALLOWED: Decision = { allowed: true };
const USUAL_SECONDS = 30;
/** Of a reason that clients are told (model). */
const MOST_REASON_CHARS = 1024;
/** How long a message to a topic may take; nobody waits for it. */
const NOTIFY_MS = 30_000;

interface Named {
  type: HookType;
  name: string;
  target: control.HarnessHookTarget;
}

/** Throws ValidationException for hooks that have one name, or a topic that nobody hears. */
export function checkHooks(hooks: readonly control.HarnessHook[], topics: readonly string[]): void {
  const names = new Set<string>();
  for (const [index, hook] of hooks.entries()) {
    const { name, target } = named(hook);
    const field = `hooks[${index}]`;
    if (names.has(name)) throw errors.invalidField(`${field}.name`, `is taken by another hook: ${name}`);
    names.add(name);
    const topic = target.sns?.arn ?? target.eventBridge?.arn;
    if (topic !== undefined && !topics.includes(topic))
      throw errors.invalidField(`${field}.target`, `names ${topic}, behind which no webhook is set up`, {
        remedy: 'Have the operator add it to notifications.webhooks.',
      });
  }
}

/** ARNs of the functions that hooks call. */
export function functionsOf(hooks: readonly control.HarnessHook[]): string[] {
  return hooks.flatMap((hook) => named(hook).target.lambda?.arn ?? []);
}

/** The hooks of a harness in one invocation, at the platform's edge of the loop. */
export class Hooks {
  readonly #deps: HooksDeps;
  readonly #of: HooksOf;
  readonly #hooks: readonly Named[];

  constructor(of: HooksOf, deps: HooksDeps) {
    this.#deps = deps;
    this.#of = of;
    this.#hooks = of.hooks.map(named);
  }

  /** Whether any is of one of these types: the loop need not ask otherwise. */
  has(...types: HookType[]): boolean {
    return this.#hooks.some(({ type }) => types.includes(type));
  }

  /** Runs those of a type in their order; the first that denies has decided. What cannot decide is told in the background. Never rejects. */
  async run(type: HookType, context: Record<string, DocumentValue>): Promise<Decision> {
    for (const hook of this.#hooks) {
      if (hook.type !== type) continue;
      const hookEventId = this.#deps.newUuid();
      const { harnessArn, sessionId: runtimeSessionId } = this.#of;
      const event = { hookEventId, name: hook.name, type, harnessArn, runtimeSessionId, ...context };
      const decision = await this.#one(hook, event);
      const { allowed, reason } = decision ?? ALLOWED;
      await this.#of.emit({
        hookEvent: {
          ...{ hookEventId, name: hook.name, type },
          ...(decision && { decision: allowed ? 'allow' : 'deny' }),
          ...(reason === undefined ? {} : { reason: reason.slice(0, MOST_REASON_CHARS) }),
        },
      });
      if (!allowed) return { allowed, reason };
    }
    return ALLOWED;
  }

  /** Undefined for a target that decides nothing. */
  async #one({ name, target }: Named, event: Record<string, DocumentValue>): Promise<Decision | undefined> {
    const { log } = this.#of;
    const { lambda } = target;
    if (!lambda) {
      const topic = target.sns?.arn ?? target.eventBridge?.arn ?? '';
      this.#deps.topics
        .publish(topic, event, AbortSignal.timeout(NOTIFY_MS))
        .catch((error: unknown) => log.warn({ err: error, hook: name }, 'a hook of a harness was not told'));
      return undefined;
    }
    const { arn, timeoutSeconds = USUAL_SECONDS, failureMode = 'deny' } = lambda;
    try {
      return await this.#ask(arn, event, timeoutSeconds);
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      log.warn({ err: error, hook: name }, 'a hook of a harness did not decide');
      return { allowed: failureMode === 'allow', reason: `The hook ${name} did not decide: ${why}` };
    }
  }

  async #ask(arn: string, payload: Record<string, DocumentValue>, seconds: number): Promise<Decision> {
    const { caller, signal } = this.#of;
    const time = AbortSignal.timeout(seconds * 1000);
    // What comes behind the turn is told also where the turn was ended.
    const both = payload.type === 'after_invocation' ? time : AbortSignal.any([signal, time]);
    const answer = await this.#deps.functions.invoke({ arn, caller, payload, signal: both }).catch((error: unknown) => {
      throw time.aborted ? new Error(`it took longer than ${seconds} seconds`) : error;
    });
    if (answer.outcome === 'failed') throw new Error(`${answer.errorType}: ${answer.errorMessage}`);
    const { decision, reason } = Object(answer.value) as { decision?: unknown; reason?: unknown };
    if (decision !== 'allow' && decision !== 'deny')
      throw new Error('its answer has no decision, which is allow or deny');
    return { allowed: decision === 'allow', ...(typeof reason === 'string' ? { reason } : {}) };
  }
}

function named({ beforeInvocation, afterInvocation, beforeToolCall, afterToolCall }: control.HarnessHook): Named {
  if (beforeInvocation) return { type: 'before_invocation', ...beforeInvocation };
  if (afterInvocation) return { type: 'after_invocation', ...afterInvocation };
  if (beforeToolCall) return { type: 'before_tool_call', ...beforeToolCall };
  if (afterToolCall) return { type: 'after_tool_call', ...afterToolCall };
  throw errors.invalidField('hooks', 'must each be of one event');
}
