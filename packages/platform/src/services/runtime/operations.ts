import type { IncomingHttpHeaders } from 'node:http';
import { errors, type Paginator } from '@agentplatform/contract';
import type { OAuthPrincipal } from '../../kernel/auth/index.ts';
import type { HandlersOf, OperationHandler, RequestContext } from '../../kernel/service.ts';
import type { Lease, Sessions } from '../../kernel/sessions/index.ts';
import type { IdentityPort } from '../identity/index.ts';
import { agentCard } from './agent-card.ts';
import { agentSpan } from './agent-span.ts';
import type { InvocationTarget, RuntimeCatalogue } from './catalogue.ts';
import { commandTimeout, runCommand } from './command.ts';
import { USER_HEADER } from './container-headers.ts';
import type { Endpoints } from './endpoints.ts';
import { findTarget, namedArns, namedRuntimeArn, runtimeIdOf } from './invocation-target.ts';
import { acquire, type InvokeDeps, invoke } from './invoke.ts';
import { requireSigned } from './require-signed.ts';
import { requireToken } from './require-token.ts';
import { requireUser } from './require-user.ts';
import { endpointArn, type Runtime, runtimeArn } from './runtime.ts';
import type { Runtimes } from './runtimes.ts';
import { endpointView, identity, runtimeSummary, runtimeView } from './views.ts';

export interface RuntimeOperationsDeps extends InvokeDeps {
  runtimes: Runtimes;
  endpoints: Endpoints;
  catalogue: RuntimeCatalogue;
  sessions: Sessions;
  identity: Pick<IdentityPort, 'arnOf'>;
  paginator: Paginator;
  region: string;
  /** Accepts a bearer token by the runtime's customJWTAuthorizer; rejects with 401 or 403. */
  verifyToken(target: InvocationTarget, token: string, headers: IncomingHttpHeaders): Promise<OAuthPrincipal>;
  /** Rejects with ThrottlingException when the endpoint gets more calls than its quota. */
  takeInvocation(endpointArn: string): void;
}

/** What this service serves. */
export const RUNTIME_OPERATIONS = [
  'CreateAgentRuntime',
  'UpdateAgentRuntime',
  'GetAgentRuntime',
  'ListAgentRuntimes',
  'ListAgentRuntimeVersions',
  'DeleteAgentRuntime',
  'CreateAgentRuntimeEndpoint',
  'UpdateAgentRuntimeEndpoint',
  'GetAgentRuntimeEndpoint',
  'ListAgentRuntimeEndpoints',
  'DeleteAgentRuntimeEndpoint',
  'InvokeAgentRuntime',
  'InvokeAgentRuntimeCommand',
  'GetAgentCard',
  'StopRuntimeSession',
] as const;
export type RuntimeOperation = (typeof RUNTIME_OPERATIONS)[number];

const PAGE_SIZE = 100;

/** The `runtimes` operations of the wire API. */
export function runtimeOperations(deps: RuntimeOperationsDeps): HandlersOf<RuntimeOperation> {
  const { runtimes, endpoints, catalogue, sessions, paginator } = deps;
  const arnOf = (id: string, ctx: RequestContext): string =>
    runtimeArn({ region: deps.region, accountId: ctx.accountId }, id);
  const anyRuntime = (_input: unknown, ctx: RequestContext): string => arnOf('*', ctx);
  const oneRuntime = (input: { agentRuntimeId: string }, ctx: RequestContext): string =>
    arnOf(input.agentRuntimeId, ctx);
  const workload = ({ accountId, id }: Runtime) => ({
    workloadIdentityDetails: { workloadIdentityArn: deps.identity.arnOf(accountId, id) },
  });
  const oneEndpoint = (input: { agentRuntimeId: string; endpointName: string }, ctx: RequestContext): string =>
    endpointArn(arnOf(input.agentRuntimeId, ctx), input.endpointName);
  const named = (input: { agentRuntimeArn: string; qualifier?: string; accountId?: string }, ctx: RequestContext) =>
    namedArns(input, ctx);

  const targetOf = async (
    input: { agentRuntimeArn: string; qualifier?: string; accountId?: string },
    ctx: RequestContext,
  ): Promise<InvocationTarget> => {
    const target = await findTarget(namedRuntimeArn(input, ctx), input.qualifier, catalogue);
    requireToken(ctx, target);
    requireSigned(ctx, target.headerAllowlist);
    if (ctx.headers[USER_HEADER] !== undefined) await requireUser(ctx, target);
    return target;
  };
  const bearer = async (
    input: { agentRuntimeArn: string; qualifier?: string; accountId?: string },
    token: string,
    headers: IncomingHttpHeaders,
  ): Promise<OAuthPrincipal> => {
    const target = await findTarget(namedRuntimeArn(input, { region: deps.region }), input.qualifier, catalogue);
    return deps.verifyToken(target, token, headers);
  };

  const leaseOf = async (
    target: InvocationTarget,
    sessionId: string | undefined,
    ctx: RequestContext,
  ): Promise<Lease> => {
    const key = {
      accountId: target.runtime.accountId,
      resourceArn: target.runtime.arn,
      sessionId: sessionId ?? deps.newSessionId(),
    };
    return sessions.tryAcquire(key) ?? (await acquire(key, target, ctx, deps));
  };

  const invokeAgentRuntime: OperationHandler<'InvokeAgentRuntime'> = {
    resource: named,
    bearer,
    async handle(input, ctx) {
      const target = await targetOf(input, ctx);
      deps.takeInvocation(target.endpoint.arn);
      return invoke(target, input, ctx, deps);
    },
  };

  return {
    CreateAgentRuntime: {
      resource: anyRuntime,
      async handle(input, ctx) {
        const made = await runtimes.create(input, ctx);
        return { ...identity(made), ...workload(made.runtime), createdAt: new Date(made.createdAt) };
      },
    },
    UpdateAgentRuntime: {
      resource: oneRuntime,
      async handle(input, ctx) {
        const made = await runtimes.update(input, ctx);
        return {
          ...identity(made),
          ...workload(made.runtime),
          createdAt: new Date(made.runtime.createdAt),
          lastUpdatedAt: new Date(made.updatedAt),
        };
      },
    },
    GetAgentRuntime: {
      resource: oneRuntime,
      async handle(input, ctx) {
        const version = await runtimes.get(input.agentRuntimeId, ctx.accountId, input.agentRuntimeVersion);
        return { ...runtimeView(version), ...workload(version.runtime) };
      },
    },
    ListAgentRuntimes: {
      resource: anyRuntime,
      async handle(input, ctx) {
        const scope = { operation: 'ListAgentRuntimes', accountId: ctx.accountId };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          runtimes.list(ctx.accountId, page),
        );
        return { agentRuntimes: items.map(runtimeSummary), nextToken };
      },
    },
    ListAgentRuntimeVersions: {
      resource: oneRuntime,
      async handle(input, ctx) {
        const { agentRuntimeId: filter } = input;
        const scope = { operation: 'ListAgentRuntimeVersions', accountId: ctx.accountId, filter };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          runtimes.versions(input.agentRuntimeId, ctx.accountId, page),
        );
        return { agentRuntimes: items.map(runtimeSummary), nextToken };
      },
    },
    DeleteAgentRuntime: {
      resource: oneRuntime,
      async handle(input, ctx) {
        await runtimes.delete(input.agentRuntimeId, ctx.accountId, input.agentRuntimeVersion);
        return {
          status: 'DELETING',
          agentRuntimeId: input.agentRuntimeId,
          agentRuntimeVersion: input.agentRuntimeVersion,
        };
      },
    },
    CreateAgentRuntimeEndpoint: {
      resource: oneRuntime,
      async handle(input, ctx) {
        const { endpoint, runtime } = await endpoints.create(input, ctx.accountId);
        return {
          targetVersion: String(endpoint.targetVersion),
          agentRuntimeEndpointArn: endpoint.arn,
          agentRuntimeArn: runtime.arn,
          agentRuntimeId: runtime.id,
          endpointName: endpoint.name,
          status: endpoint.status,
          createdAt: new Date(endpoint.createdAt),
        };
      },
    },
    UpdateAgentRuntimeEndpoint: {
      resource: oneEndpoint,
      handle: async (input, ctx) => endpointView(await endpoints.update(input, ctx.accountId)),
    },
    GetAgentRuntimeEndpoint: {
      resource: oneEndpoint,
      handle: async (input, ctx) =>
        endpointView(await endpoints.get(input.agentRuntimeId, input.endpointName, ctx.accountId)),
    },
    ListAgentRuntimeEndpoints: {
      resource: oneRuntime,
      async handle(input, ctx) {
        const { agentRuntimeId: filter } = input;
        const scope = { operation: 'ListAgentRuntimeEndpoints', accountId: ctx.accountId, filter };
        const { items, nextToken } = await paginator.page(scope, { ...input, size: PAGE_SIZE }, (page) =>
          endpoints.list(input.agentRuntimeId, ctx.accountId, page),
        );
        return { runtimeEndpoints: items.map(endpointView), nextToken };
      },
    },
    DeleteAgentRuntimeEndpoint: {
      resource: oneEndpoint,
      async handle(input, ctx) {
        await endpoints.delete(input.agentRuntimeId, input.endpointName, ctx.accountId);
        return { status: 'DELETING', agentRuntimeId: input.agentRuntimeId, endpointName: input.endpointName };
      },
    },
    InvokeAgentRuntime: invokeAgentRuntime,
    InvokeAgentRuntimeCommand: {
      resource: named,
      bearer,
      async handle(input, ctx) {
        const timeout = commandTimeout(input.body);
        const target = await targetOf(input, ctx);
        deps.takeInvocation(target.endpoint.arn);
        const lease = await leaseOf(target, input.runtimeSessionId, ctx);
        return {
          runtimeSessionId: lease.session.row.sessionId,
          contentType: 'application/vnd.amazon.eventstream',
          statusCode: 200,
          stream: runCommand(
            lease,
            input.body.command,
            timeout,
            ctx,
            agentSpan(ctx.span, 'execute_command', target, lease),
          ),
        };
      },
    },
    GetAgentCard: {
      resource: named,
      bearer,
      async handle(input, ctx) {
        const target = await targetOf(input, ctx);
        if (target.version.protocol !== 'A2A') {
          throw errors.validation(
            `${target.runtime.id} speaks ${target.version.protocol}; only a runtime with serverProtocol A2A has an agent card.`,
          );
        }
        const lease = await leaseOf(target, input.runtimeSessionId, ctx);
        try {
          return {
            runtimeSessionId: lease.session.row.sessionId,
            agentCard: await agentCard(lease, target, ctx, deps.tokens),
            statusCode: 200,
          };
        } finally {
          lease.release();
        }
      },
    },
    StopRuntimeSession: {
      resource: named,
      bearer,
      async handle(input, ctx) {
        const target = await targetOf(input, ctx);
        const key = {
          accountId: target.runtime.accountId,
          resourceArn: target.runtime.arn,
          sessionId: input.runtimeSessionId,
        };
        if (!(await sessions.stop(key))) {
          throw errors.resourceNotFound(
            `${runtimeIdOf(target.runtime.arn)} has no live session ${input.runtimeSessionId}.`,
            { remedy: 'It may have ended by itself; nothing is left to stop.' },
          );
        }
        return { runtimeSessionId: input.runtimeSessionId, statusCode: 200 };
      },
    },
  };
}
