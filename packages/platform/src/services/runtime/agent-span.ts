import type { Lease } from '../../kernel/sessions/index.ts';
import { errorCodeOf, type Span } from '../../kernel/telemetry/index.ts';
import type { InvocationTarget } from './catalogue.ts';

/** What the agent of a session is asked, as a part of the request: OpenTelemetry's span of a remote agent. Must be ended. */
export function agentSpan(
  request: Span,
  operation: 'invoke_agent' | 'execute_command',
  { runtime, version, endpoint }: InvocationTarget,
  lease: Lease,
): Span {
  if (!request.traced) return request;
  const span = request.child(`${operation} ${runtime.name}`, 'client');
  span.set('gen_ai.operation.name', operation);
  span.set('gen_ai.agent.id', runtime.id);
  span.set('gen_ai.agent.name', runtime.name);
  span.set('gen_ai.agent.version', version.version);
  span.set('gen_ai.conversation.id', lease.session.row.sessionId);
  span.set('session.id', lease.session.row.sessionId);
  span.set('agentplatform.endpoint', endpoint.name);
  span.handTo(lease.session);
  return span;
}

/** The lease, with which the span ends. */
export function held(lease: Lease, span: Span): Lease {
  if (!span.traced) return lease;
  return {
    ...lease,
    release: () => {
      span.end();
      lease.release();
    },
  };
}

/** Ends it for an error. */
export function endWith(span: Span, error: unknown): void {
  span.fail(errorCodeOf(error));
  span.end();
}
