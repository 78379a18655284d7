import {
  InsufficientScopeError,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  SdkError,
  SdkErrorCode,
  SdkHttpError,
  UrlElicitationRequiredError,
} from '@modelcontextprotocol/client';
import { OutboundError } from '../../../../kernel/outbound/index.ts';
import type { Mask } from '../../http-tools/index.ts';
import { BackendError } from '../../outbound/backend-error.ts';
import { ToolError } from '../../tool-error.ts';
import { plainText } from '../../tools/plain-text.ts';
import { HandshakeTimeout } from './backend-connection.ts';
import { NO_RESULT } from './backend-transport.ts';
import { masked } from './masked.ts';

/** Limit of an excerpt of the server's text. */
const LONGEST_EXCERPT = 500;

/**
 * What went wrong at a backend, for who called: what it was and whose fault, without its credential. A ProtocolError is what the backend itself
 * says; a consent that it asks for at an address of its own is passed on. No error has a cause: that one could tell the credential to a log.
 */
export function backendError(error: unknown, mask: Mask): unknown {
  if (error instanceof OutboundError)
    return new OutboundError(error.code, `The server cannot be used: ${mask.text(error.message)}.`);
  if (error instanceof ToolError || !(error instanceof Error)) return error;
  if (error instanceof HandshakeTimeout) return new BackendError(error.message);
  if (error instanceof ProtocolError) return protocolError(error, mask);
  if (error instanceof InsufficientScopeError) return refused(403, error.requiredScope ?? '', mask);
  if (error instanceof SdkHttpError) return httpError(error, mask);
  if (error instanceof SdkError && error.code === SdkErrorCode.RequestTimeout)
    return new BackendError('The server did not answer in time.');
  return new BackendError(`The server does not answer as MCP has it.${excerpt(error.message, mask)}`);
}

function protocolError(error: ProtocolError, mask: Mask): Error {
  const { code, message } = error;
  if (code === NO_RESULT.code && message === NO_RESULT.message)
    return new BackendError('The server ended its answer without a result.');
  const text = plainText(mask.text(message), LONGEST_EXCERPT);
  if (error instanceof UrlElicitationRequiredError && error.elicitations.every(({ url }) => /^https?:\/\//i.test(url)))
    return new UrlElicitationRequiredError(masked(error.elicitations, mask), text);
  if (error instanceof MissingRequiredClientCapabilityError)
    return new MissingRequiredClientCapabilityError(
      { requiredCapabilities: masked(error.requiredCapabilities, mask) },
      text,
    );
  return new ProtocolError(code, text);
}

function httpError({ status, data }: SdkHttpError, mask: Mask): Error {
  const text = typeof data.text === 'string' ? data.text : '';
  if (status === 401 || status === 403) return refused(status, text, mask);
  if (status >= 500) return new BackendError(`The server fails with the status ${status}.${excerpt(text, mask)}`);
  if (status >= 300 && status < 400)
    return new ToolError('The server redirects to another address. Give the right address as the endpoint.');
  return new ToolError(`The server refuses the request with the status ${status}.${excerpt(text, mask)}`);
}

function refused(status: number, text: string, mask: Mask): Error {
  return new ToolError(
    `The server refuses the target's credential with the status ${status}. Mend credentialProviderConfigurations of the target.${excerpt(text, mask)}`,
  );
}

function excerpt(text: string, mask: Mask): string {
  const shown = plainText(mask.text(text), LONGEST_EXCERPT);
  return shown === '' ? '' : ` It says: ${shown}`;
}
