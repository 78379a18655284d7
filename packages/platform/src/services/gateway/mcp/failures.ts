import { ServiceError } from '@agentplatform/contract';
import { ProtocolError, ProtocolErrorCode, UrlElicitationRequiredError } from '@modelcontextprotocol/server';
import type { Logger } from 'pino';
import { OutboundError } from '../../../kernel/outbound/index.ts';
import type { Gateway } from '../gateways/gateway.ts';
import { ConsentNeeded } from '../outbound/consent-needed.ts';
import { ToolError } from '../tool-error.ts';

/** What a client was doing when it went wrong. */
export interface Doing {
  gateway: Gateway;
  /** The tool, prompt or resource as it is listed. */
  name: string;
  requestId: string;
}

/** What went wrong behind a gateway, for its client. Throws UrlElicitationRequired where a person has to consent. */
export function failureText(error: unknown, { gateway, name, requestId }: Doing, log: Logger): string {
  if (error instanceof ConsentNeeded)
    throw new UrlElicitationRequiredError(
      [{ mode: 'url', message: error.message, url: error.url, elicitationId: error.sessionUri }],
      error.message,
    );
  if (error instanceof UrlElicitationRequiredError) throw error;
  if (error instanceof ProtocolError)
    return `The server behind the target refuses with ${error.code}: ${error.message}`;
  const known = error instanceof ToolError || error instanceof ServiceError || error instanceof OutboundError;
  if (!known) log.error({ err: error, requestId, gateway: gateway.id, name }, 'a target could not be asked');
  const debug = gateway.definition.exceptionLevel === 'DEBUG' && error instanceof Error;
  // It names the gateway's role and providers, which are its owner's business.
  if (error instanceof ServiceError && error.status === 403 && !debug)
    return 'The gateway may not use the credential of this target. Its owner sees why with exceptionLevel DEBUG.';
  return known || debug ? (error as Error).message : `The platform failed. Request ${requestId} is in its log.`;
}

/** The same where MCP has no results that are errors: a backend's own error keeps its code. */
export function failure(error: unknown, doing: Doing, log: Logger): ProtocolError {
  if (error instanceof ProtocolError && !(error instanceof UrlElicitationRequiredError)) return error;
  return new ProtocolError(ProtocolErrorCode.InternalError, failureText(error, doing, log));
}
