import type { RequestContext } from '../../kernel/service.ts';
import type { TraceContext } from '../../kernel/telemetry/index.ts';
import type { AgentTokens } from './agent-tokens.ts';
import type { InvocationTarget } from './catalogue.ts';
import { containerHeaders } from './container-headers.ts';

/** What the agent of that target gets with a request of that caller, by whatever way it comes; see `containerHeaders`. */
export function agentHeaders(
  target: InvocationTarget,
  caller: Pick<RequestContext, 'principal' | 'headers'>,
  { tokens, ...ids }: { tokens: AgentTokens; sessionId: string; requestId: string; trace: TraceContext | undefined },
): string[] {
  return containerHeaders({
    ...ids,
    headers: caller.headers,
    workloadToken: tokens.of(target.runtime, caller),
    callbackUrl: target.callbackUrl,
    allowlist: target.headerAllowlist,
    bearer: caller.principal.kind === 'oauth',
  });
}
