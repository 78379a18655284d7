import { type control, type data, type Paginator, ServiceError } from '@agentplatform/contract';
import { ownerOf } from '../../kernel/auth/index.ts';
import type { HandlersOf, RequestContext } from '../../kernel/service.ts';
import { type Interpreter, interpreterArn, interpreterIdOf } from './interpreter.ts';
import { type Caller, DEFAULT_TIMEOUT_SECONDS, type InterpreterSessions } from './interpreter-sessions.ts';
import { type Interpreters, refuseUnsupported } from './interpreters.ts';
import { type InvokeLimits, invokeTool } from './invoke.ts';
import type { SessionRecord } from './session-records.ts';
import { toolCall } from './tool-arguments.ts';

export interface CodeInterpreterOperationsDeps {
  interpreters: Interpreters;
  sessions: InterpreterSessions;
  paginator: Paginator;
  limits: InvokeLimits;
  clock: { now(): number };
  region: string;
}

/** What this service serves. */
export const CODE_INTERPRETER_OPERATIONS = [
  'CreateCodeInterpreter',
  'GetCodeInterpreter',
  'ListCodeInterpreters',
  'DeleteCodeInterpreter',
  'StartCodeInterpreterSession',
  'GetCodeInterpreterSession',
  'ListCodeInterpreterSessions',
  'StopCodeInterpreterSession',
  'InvokeCodeInterpreter',
] as const;
export type CodeInterpreterOperation = (typeof CODE_INTERPRETER_OPERATIONS)[number];

const PAGE_SIZE = 100;
/** To list, see, use and stop sessions that others have started; the right to the operation itself comes first. */
const ADMINISTER = 'agentplatform:AdministerCodeInterpreterSessions';
/** Names the built-in interpreter's place in a list: before all others. */
const AFTER_BUILT_IN = 'built-in';

/** The `code-interpreters` operations of the wire API. */
export function codeInterpreterOperations(deps: CodeInterpreterOperationsDeps): HandlersOf<CodeInterpreterOperation> {
  const { interpreters, sessions, paginator, limits, clock, region } = deps;
  const arnOf = (id: string, ctx: RequestContext): string => interpreterArn(id, region, ctx.accountId);
  const any = (_input: unknown, ctx: RequestContext): string => arnOf('*', ctx);
  const one = (input: { codeInterpreterId: string }, ctx: RequestContext): string =>
    arnOf(input.codeInterpreterId, ctx);
  const named = (input: { codeInterpreterIdentifier: string }, ctx: RequestContext): string =>
    arnOf(interpreterIdOf(input.codeInterpreterIdentifier), ctx);
  const find = (input: { codeInterpreterIdentifier: string }, ctx: RequestContext): Promise<Interpreter> =>
    interpreters.get(interpreterIdOf(input.codeInterpreterIdentifier), ctx.accountId);

  const callerOf = ({ arn }: Interpreter, ctx: RequestContext): Caller => ({
    accountId: ctx.accountId,
    owner: ownerOf(ctx.principal),
    administers: () => may(ctx, ADMINISTER, arn),
  });

  return {
    CreateCodeInterpreter: {
      resource: any,
      async handle(input, ctx) {
        const made = await interpreters.create(input, ctx);
        return {
          codeInterpreterId: made.id,
          codeInterpreterArn: made.arn,
          createdAt: new Date(made.createdAt),
          status: 'READY',
        };
      },
    },
    GetCodeInterpreter: {
      resource: one,
      handle: async (input, ctx) => view(await interpreters.get(input.codeInterpreterId, ctx.accountId)),
    },
    ListCodeInterpreters: {
      resource: any,
      async handle(input, ctx) {
        const { accountId } = ctx;
        const scope = { operation: 'ListCodeInterpreters', accountId, filter: input.type ?? '' };
        const { items, nextToken } = await paginator.page(
          scope,
          { ...input, size: PAGE_SIZE },
          async ({ limit, after }) => {
            const builtIn = input.type === 'CUSTOM' || after !== undefined ? [] : [interpreters.builtIn(accountId)];
            if (input.type === 'SYSTEM') return { items: builtIn };
            const room = limit - builtIn.length;
            if (room === 0) return { items: builtIn, next: AFTER_BUILT_IN };
            const place = after === AFTER_BUILT_IN ? undefined : after;
            const own = await interpreters.list(accountId, { limit: room, after: place });
            return { items: [...builtIn, ...own.items], next: own.next };
          },
        );
        return { codeInterpreterSummaries: items.map(summary), nextToken };
      },
    },
    DeleteCodeInterpreter: {
      resource: one,
      async handle({ codeInterpreterId }, ctx) {
        await interpreters.delete(codeInterpreterId, ctx.accountId);
        return { codeInterpreterId, status: 'DELETING', lastUpdatedAt: new Date(clock.now()) };
      },
    },
    StartCodeInterpreterSession: {
      resource: named,
      async handle(input, ctx) {
        refuseUnsupported(input);
        const interpreter = await find(input, ctx);
        const wish = { name: input.name, timeoutSeconds: input.sessionTimeoutSeconds ?? DEFAULT_TIMEOUT_SECONDS };
        const record = await sessions.start(interpreter, wish, callerOf(interpreter, ctx), ctx);
        return {
          codeInterpreterIdentifier: interpreter.id,
          sessionId: record.sessionId,
          createdAt: new Date(record.createdAt),
        };
      },
    },
    GetCodeInterpreterSession: {
      resource: named,
      async handle(input, ctx) {
        const interpreter = await find(input, ctx);
        const { record, live } = await sessions.get(interpreter, callerOf(interpreter, ctx), input.sessionId);
        return {
          ...sessionSummary(record, interpreter, live),
          sessionTimeoutSeconds: record.timeoutSeconds,
        };
      },
    },
    ListCodeInterpreterSessions: {
      resource: named,
      async handle(input, ctx) {
        const interpreter = await find(input, ctx);
        const filter = `${interpreter.id} ${input.status ?? ''}`;
        const scope = { operation: 'ListCodeInterpreterSessions', accountId: ctx.accountId, filter };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          sessions.list(interpreter, callerOf(interpreter, ctx), { ...page, status: input.status }),
        );
        return {
          items: items.map(({ live, ...record }) => sessionSummary(record, interpreter, live)),
          nextToken,
        };
      },
    },
    StopCodeInterpreterSession: {
      resource: named,
      async handle(input, ctx) {
        const interpreter = await find(input, ctx);
        await sessions.stop(interpreter, callerOf(interpreter, ctx), input.sessionId);
        return {
          codeInterpreterIdentifier: interpreter.id,
          sessionId: input.sessionId,
          lastUpdatedAt: new Date(clock.now()),
        };
      },
    },
    InvokeCodeInterpreter: {
      resource: named,
      async handle(input, ctx) {
        const call = toolCall(input.name, input.arguments);
        const interpreter = await find(input, ctx);
        const caller = callerOf(interpreter, ctx);
        // Without a session the call gets one of its own, which it may go on with.
        const sessionId =
          input.sessionId ??
          (await sessions.start(interpreter, { name: undefined, timeoutSeconds: DEFAULT_TIMEOUT_SECONDS }, caller, ctx))
            .sessionId;
        const lease = await sessions.lease(interpreter, caller, sessionId, ctx.signal);
        return { sessionId, stream: await invokeTool(call, lease, ctx, limits, () => sessions.whatIsMissing(lease)) };
      },
    },
  };
}

async function may(ctx: RequestContext, action: string, resource: string): Promise<boolean> {
  try {
    await ctx.require(action, resource);
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'AccessDeniedException') return false;
    throw error;
  }
}

function view(interpreter: Interpreter): control.GetCodeInterpreterResponse {
  const { id, arn, name, description, executionRoleArn, network, createdAt, updatedAt } = interpreter;
  return {
    codeInterpreterId: id,
    codeInterpreterArn: arn,
    name,
    description,
    executionRoleArn,
    networkConfiguration: network,
    status: 'READY',
    createdAt: new Date(createdAt),
    lastUpdatedAt: new Date(updatedAt),
  };
}

function summary({ id, arn, name, description, createdAt, updatedAt }: Interpreter): control.CodeInterpreterSummary {
  return {
    codeInterpreterId: id,
    codeInterpreterArn: arn,
    name,
    description,
    status: 'READY',
    createdAt: new Date(createdAt),
    lastUpdatedAt: new Date(updatedAt),
  };
}

function sessionSummary(
  record: SessionRecord,
  interpreter: Interpreter,
  live: boolean,
): data.CodeInterpreterSessionSummary {
  return {
    codeInterpreterIdentifier: interpreter.id,
    sessionId: record.sessionId,
    name: record.name,
    status: live ? 'READY' : 'TERMINATED',
    createdAt: new Date(record.createdAt),
  };
}
